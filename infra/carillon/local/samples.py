"""The sample jobs of `make run`: one of each way to schedule, and one of each way to end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

ONE_SHOT_DELAY = timedelta(seconds=20)
FAILURE_DELAY = timedelta(seconds=10)
SLEEP_SECONDS = 1.5
"""More than the second between two occurrences; runs of two seconds are slow, and wait their turn
in a lane of their own."""


def sample_jobs(now: datetime, webhook_url: str) -> list[dict[str, Any]]:
    """The five recurring jobs, the same at every start, and two one-shots soon after `now`.

    `overlap` has two occurrences within the time that a run of it takes: the second is skipped. It
    sleeps in the low lane, where it holds up no other. The callback of `always-fails` goes to the
    receiver, too.
    """
    receiver = {"type": "webhook", "url": webhook_url}
    retry = {
        "max_attempts": 3,
        "backoff": {"base_seconds": 4, "factor": 2, "cap_seconds": 8},
    }
    return [
        _sample("heartbeat", "every 5s", _task("echo"), _says("still here")),
        _sample("riga-minute", "* * * * *", _task("echo"), _says("hello"), timezone="Europe/Riga"),
        _sample("webhook", "every 20s", receiver, _says("ding")),
        _sample("spread", "*/2 * * * *", _task("echo"), _says("at my own second"), window="50%"),
        _sample(
            "overlap",
            "every 30s | every 30s offset 1s",
            _task("sleep"),
            {"seconds": SLEEP_SECONDS},
            overlap="skip",
            priority="low",
        ),
        _sample("one-shot", _at(now + ONE_SHOT_DELAY), _task("echo"), _says("once")),
        _sample(
            "always-fails",
            _at(now + FAILURE_DELAY),
            _task("fail"),
            _says("as asked"),
            retry=retry,
            on_failure=receiver,
        ),
    ]


def _sample(
    name: str, schedule: str, target: dict[str, str], payload: dict[str, Any], **more: object
) -> dict[str, Any]:
    """The body of PUT /jobs/named/{name}."""
    return {"name": name, "schedule": schedule, "target": target, "payload": payload, **more}


def _says(message: str) -> dict[str, Any]:
    return {"message": message}


def _task(name: str) -> dict[str, str]:
    return {"type": "task", "name": name}


def _at(moment: datetime) -> str:
    return f"at {moment:%Y-%m-%dT%H:%M:%S}"
