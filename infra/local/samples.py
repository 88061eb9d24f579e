"""The sample jobs of `make run`: one of each way to schedule, and one of each way to end."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

ONE_SHOT_DELAY = timedelta(seconds=20)
FAILURE_DELAY = timedelta(seconds=10)


@dataclass(frozen=True)
class Sample:
    """A job to register."""

    body: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.body["name"])

    @property
    def idempotency_key(self) -> str:
        """Made of the body, so that what is the same at every start is registered once for ever."""
        canonical = json.dumps(self.body, sort_keys=True).encode()
        return f"local-{self.name}-{hashlib.sha256(canonical).hexdigest()[:16]}"


def sample_jobs(now: datetime, webhook_url: str) -> list[Sample]:
    """The four recurring jobs, the same at every start, and two one-shots soon after `now`."""
    receiver = {"type": "webhook", "url": webhook_url}
    retry = {
        "max_attempts": 3,
        "backoff": {"base_seconds": 4, "factor": 2, "cap_seconds": 8},
    }
    return [
        _sample("heartbeat", "every 5s", _task("echo"), "still here"),
        _sample("riga-minute", "* * * * *", _task("echo"), "hello", timezone="Europe/Riga"),
        _sample("webhook", "every 20s", receiver, "ding"),
        _sample("spread", "*/2 * * * *", _task("echo"), "at my own second", window="50%"),
        _sample("one-shot", _at(now + ONE_SHOT_DELAY), _task("echo"), "once"),
        _sample(
            "always-fails",
            _at(now + FAILURE_DELAY),
            _task("fail"),
            "as asked",
            retry=retry,
        ),
    ]


def _sample(
    name: str, schedule: str, target: dict[str, str], message: str, **more: object
) -> Sample:
    payload = {"message": message}
    return Sample(
        {"name": name, "schedule": schedule, "target": target, "payload": payload, **more}
    )


def _task(name: str) -> dict[str, str]:
    return {"type": "task", "name": name}


def _at(moment: datetime) -> str:
    return f"at {moment:%Y-%m-%dT%H:%M:%S}"
