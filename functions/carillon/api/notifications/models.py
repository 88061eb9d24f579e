"""The body of a notification, and the forms in answers."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, field_validator

from carillon.api.http.fields import ListForm, UtcTime
from carillon.domain.notifying.notification import (
    FAILURES,
    Channel,
    Notification,
    Told,
)
from carillon.domain.run import DEAD_LETTER, Run
from carillon.domain.spec.fields import DAY_SECONDS, DefaultedDocument, Seconds, UniqueValues
from carillon.domain.spec.job_spec import MOST_TAGS, TagKey, TagValue
from carillon.domain.targets import WebhookTarget
from carillon.schedules import format_duration

_FAILED = ", ".join(sorted(FAILURES))


class NotificationBody(DefaultedDocument):
    """A notification, whole: what it was before is replaced.

    It tells of the events `on` of the jobs named `jobs`, or whose names begin so where that ends in
    `*`, and that have all of `tags`; without both, of all your jobs.
    """

    on: Annotated[
        tuple[Told, ...],
        Field(json_schema_extra={"minItems": 1}, examples=[["run.dead", "run.recovered"]]),
        UniqueValues,
    ]
    to: Channel
    jobs: Annotated[
        str,
        Field(
            max_length=129,
            pattern=r"^[^\x00-\x1f\x7f]*$",
            description="A job's name, or the beginning of names and `*`, whatever their case.",
            examples=["import *"],
        ),
    ] = ""
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=MOST_TAGS)] = Field(
        default_factory=dict
    )
    at_most_every: Annotated[
        int | None,
        Seconds(60, DAY_SECONDS, "The time between two messages, at least; 15m without."),
    ] = None

    @field_validator("on")
    @classmethod
    def _recovered_from_something(cls, on: tuple[Told, ...]) -> tuple[Told, ...]:
        if not on:
            raise ValueError(f"must name one of {', '.join(Told)} at least")
        if Told.RUN_RECOVERED in on and FAILURES.isdisjoint(on):
            raise ValueError(f"{Told.RUN_RECOVERED} needs one of {_FAILED} beside it")
        return on

    @field_validator("to")
    @classmethod
    def _takes_a_message(cls, to: Any) -> Any:
        if getattr(to, "completion", None) is not None:
            raise ValueError("cannot have a completion: a message ends with its delivery")
        if isinstance(to, WebhookTarget) and to.is_bodiless:
            raise ValueError(f"cannot use {to.method}, which has no body: use POST")
        return to


class DeliveryForm(BaseModel):
    """The delivery of a message: a run, with its `status` and, if it has failed, its error."""

    run_id: str
    status: str
    at: UtcTime
    attempt: int
    error_kind: str | None
    error_message: str | None

    @classmethod
    def of(cls, run: Run) -> "DeliveryForm":
        error = run.error
        return cls(
            run_id=run.key.run_id,
            status=run.status.value,
            at=run.finished_at or run.updated_at,
            attempt=run.attempt,
            error_kind=None if error is None else error.kind,
            error_message=None if error is None else error.message,
        )


class NotificationForm(BaseModel):
    """A notification and its state: the last delivery, and whether its channel is dead."""

    name: str
    revision: int
    on: list[str]
    to: dict[str, Any]
    jobs: str
    tags: dict[str, str]
    at_most_every: str
    created_at: UtcTime
    updated_at: UtcTime
    last_delivery: DeliveryForm | None
    is_dead: bool

    @classmethod
    def of(cls, notification: Notification, last: Run | None) -> "NotificationForm":
        return cls(
            name=notification.name,
            revision=notification.revision,
            on=[each.value for each in notification.on],
            to=notification.channel.model_dump(mode="json", exclude_none=True),
            jobs=notification.jobs,
            tags=dict(notification.tags),
            at_most_every=format_duration(notification.at_most_every),
            created_at=notification.created_at,
            updated_at=notification.updated_at,
            last_delivery=None if last is None else DeliveryForm.of(last),
            is_dead=last is not None and last.status in DEAD_LETTER,
        )


class NotificationPage(ListForm):
    items: list[NotificationForm]


class TestForm(BaseModel):
    """A test that was ordered: its run shows what became of it."""

    __test__ = False
    run_id: str
