"""The jobs of the chaos run: every policy that keeps a state, and targets that leave evidence."""

from datetime import datetime, timedelta
from typing import Any

Json = dict[str, Any]

QUICK = {"type": "fixed", "base_seconds": 1}


def utc(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


def once(instant: datetime) -> str:
    return f"at {instant:%Y-%m-%dT%H:%M:%S}"


def webhook_job(name: str, schedule: object, url: str, **members: object) -> Json:
    """The body of a job that calls the witness, with six quick attempts."""
    return {
        "name": name,
        "schedule": schedule,
        "target": {"type": "webhook", "url": url},
        "retry": {"max_attempts": 6, "backoff": QUICK},
        "timeout_seconds": 1,
        **members,
    }


def fleet(url: str, begins_at: datetime, ends_at: datetime) -> list[Json]:
    """Bodies of `POST /jobs`; recurring ones have no occurrence after `ends_at`."""

    def task(name: str) -> Json:
        return {"type": "task", "name": name}

    def recurring(name: str, schedule: object, **members: object) -> Json:
        return webhook_job(name, schedule, url, end_at=utc(ends_at), **members)

    one_try = {"max_attempts": 1}
    jittered = {"max_attempts": 5, "backoff": {"base_seconds": 1, "factor": 2, "cap_seconds": 4}}
    shared = {"key": "till", "limit": 1}
    spread = [once(begins_at + timedelta(seconds=seconds)) for seconds in (9, 19, 31, 42, 55)]
    return [
        recurring("seconds", "*/3 * * * * *"),
        recurring("seconds-low", "1-59/6 * * * * *", priority="low", retry=jittered),
        recurring("urgent", "every 2s", priority="high"),
        recurring("steady", "every 5s offset 1s", catch_up="all"),
        recurring("alone", "every 4s", overlap="skip"),
        recurring("in-turn", "every 5s", overlap="queue_one", priority="high"),
        recurring("one-try", "every 4s offset 3s", retry=one_try),
        recurring(
            "tells",
            "every 7s",
            retry=one_try,
            on_failure={"type": "webhook", "url": url},
        ),
        recurring("spaced", "every 6s", tolerance="2s"),
        recurring("till-1", "every 6s offset 2s", concurrency=shared),
        recurring("till-2", "every 6s offset 5s", concurrency=shared, priority="low"),
        recurring("rated", "every 4s offset 2s", rate={"limit": 2, "per": "6s"}),
        recurring("chained", "every 3s after finish"),
        recurring("child", "every 6s offset 4s", target=task("echo"), payload={"n": 1}),
        recurring("child-dies", "every 9s", target=task("die"), retry=one_try),
        recurring("windowed", "every 10s", window="5s", priority="low"),
        webhook_job("listed", spread, url),
        webhook_job("once-soon", once(begins_at + timedelta(seconds=8)), url, priority="high"),
        webhook_job("once-late", once(begins_at + timedelta(seconds=50)), url, retry=one_try),
    ]
