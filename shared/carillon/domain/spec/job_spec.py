"""JobSpec: every setting of a job, declared once.

Bodies of requests, patches, answers, OpenAPI, the stored row, the options of the CLI and the tests
of all these derive from it.
"""

import json
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from carillon.domain.calendar import CalendarUse
from carillon.domain.events import JOB_EVENTS, EventType
from carillon.domain.policies import (
    CatchUp,
    Concurrency,
    Lane,
    OnComplete,
    Overlap,
    Priority,
    Rate,
    RetryPolicy,
)
from carillon.domain.spec.fields import (
    DAY_SECONDS,
    PLAIN,
    Flag,
    JsonText,
    NullsAreDefaults,
    Seconds,
    UniqueValues,
    compact_json,
)
from carillon.domain.spec.merge_patch import PatchedAs
from carillon.domain.spec.schedule_spec import STORED, ScheduleSpec, WindowText
from carillon.domain.targets import Target

MOST_TAGS = 20

REINDEX = object()
"""Marks a setting that entries on the wheel carry: its change needs new ones."""

_EVENTS = [each.value for each in JOB_EVENTS]


def _event(value: object) -> EventType:
    if value not in _EVENTS:
        raise ValueError(f"must be one of {', '.join(_EVENTS)}")
    return EventType(value)


def _sorted(tags: dict[str, str]) -> dict[str, str]:
    return dict(sorted(tags.items()))


Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"\S")]
JobEvent = Annotated[
    EventType, BeforeValidator(_event), WithJsonSchema({"type": "string", "enum": _EVENTS})
]
TagKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
TagValue = Annotated[str, Field(max_length=256, pattern=r"^[^\x00-\x1f\x7f,]*$")]
TagsPatch = Annotated[dict[TagKey, TagValue | None], Field(max_length=2 * MOST_TAGS)]
TargetPatch = dict[str, Any]


class JobSpec(ScheduleSpec):
    """A job to be created, or as it is to be after a change.

    `on_complete` says what becomes of it when its last run has ended and no occurrence is left:
    it is kept and shows as completed, or goes. `timeout_seconds` null is the default: half the
    interval of an `every` schedule, else 10 s. `template`: strings of the payload may have
    placeholders such as `{{fire_at}}`. `on_success` and `on_failure` are called about each run that
    succeeded, or became a dead letter. Null is the default of whatever need not be said.
    """

    name: Name
    target: Annotated[Target, PatchedAs(TargetPatch)]
    payload: JsonText = "null"
    template: Flag = False
    priority: Annotated[Priority, REINDEX] = Lane.NORMAL
    catch_up: Annotated[CatchUp, REINDEX] = CatchUp.LATEST
    grace: Annotated[
        int | None,
        Seconds(
            1, 14 * DAY_SECONDS, "How late an occurrence may start; `catch_up` decides about later."
        ),
        REINDEX,
    ] = None
    overlap: Overlap = Overlap.ALLOW
    tolerance: Annotated[
        int | None,
        Seconds(
            0,
            366 * DAY_SECONDS,
            "Least spacing, of an `every` schedule: what would start before the last start + "
            "interval - tolerance is skipped. Less than the interval.",
        ),
    ] = None
    concurrency: Concurrency | None = None
    rate: Annotated[Rate, NullsAreDefaults()] | None = None
    retry: Annotated[RetryPolicy, NullsAreDefaults()] = RetryPolicy()
    # The deployment's own limit is lower still: the executor's timeout less 5 s.
    timeout_seconds: Annotated[int | None, Field(ge=1, le=895, strict=True)] = None
    pause_after_failures: Annotated[
        int | None,
        Field(
            ge=1,
            le=20,
            strict=True,
            description="So many scheduled runs that end as dead letters, without a success "
            "between, pause the job.",
        ),
    ] = None
    expect_within: Annotated[
        int | None,
        Seconds(
            60,
            7 * DAY_SECONDS,
            "A run is missed, and told of, if no success is recorded so long after its effective "
            "time.",
        ),
        REINDEX,
    ] = None
    on_success: Annotated[Target | None, PatchedAs(TargetPatch)] = None
    on_failure: Annotated[Target | None, PatchedAs(TargetPatch)] = None
    events: Annotated[
        tuple[JobEvent, ...],
        Field(max_length=len(_EVENTS), description="The events that are put on the event bus."),
        UniqueValues,
    ] = ()
    on_complete: OnComplete = OnComplete.KEEP
    window: WindowText | None = None
    calendar: Annotated[Annotated[CalendarUse, NullsAreDefaults()] | None, REINDEX] = None
    parent: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=128,
            pattern=PLAIN,
            description="What the job belongs to: jobs are listed, paused and deleted by it.",
        ),
    ] = None
    tags: Annotated[
        dict[TagKey, TagValue],
        Field(
            max_length=MOST_TAGS,
            description="Keys of letters, digits, `_`, `.`, `-`; values without commas or control "
            "characters.",
            examples=[{"team": "billing"}],
        ),
        AfterValidator(_sorted),
        PatchedAs(TagsPatch),
    ] = Field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        """The body that says it, every member named, of JSON's types."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def text(self) -> str:
        """The document as it is stored."""
        return compact_json(self.document)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """The spec that `text` made, now or in another version: members that this one does not
        know are ignored. Raises pydantic.ValidationError, a ValueError."""
        return cls.model_validate(json.loads(text), context=STORED, extra="ignore")


def members_marked(mark: object) -> tuple[str, ...]:
    """The names of the settings that carry a mark."""
    return tuple(name for name, field in JobSpec.model_fields.items() if mark in field.metadata)
