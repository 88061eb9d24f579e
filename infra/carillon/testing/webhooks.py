"""Functions in place of the endpoints of webhooks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One call as its endpoint sees it: `payload` is what the body says, None where there is no
    body."""

    url: str
    method: str
    payload: Any
    run_id: str
    job_name: str
    attempt: int
    fire_at: datetime


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an endpoint; `Retry-After` among the headers counts as ever."""

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises TypeError where a member is of another type."""
        texts = (self.body, *self.headers, *self.headers.values())
        if not isinstance(self.status, int) or not all(isinstance(each, str) for each in texts):
            raise TypeError(
                f"{self!r} is no answer: its status is a number, its body and headers are texts, "
                "such as Answer(503, 'busy', {'Retry-After': '90'})"
            )


WebhookFunction = Callable[[WebhookCall], Answer | int | None]
"""Answers an Answer, or a status; None is 200."""


def answer_of(answered: object, url: str) -> Answer:
    """Raises TypeError for what is no answer."""
    if answered is None:
        return Answer()
    if isinstance(answered, int) and not isinstance(answered, bool):
        return Answer(answered)
    if isinstance(answered, Answer):
        return answered
    raise TypeError(
        f"the function of {url} answered {answered!r}: it must be a status such as 503, "
        "an Answer of carillon.testing.webhooks, or None"
    )
