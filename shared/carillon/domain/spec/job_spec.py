"""JobSpec: every setting of a job, declared once.

Bodies of requests, patches, answers, OpenAPI, the stored row, the options of the CLI and the tests
of all these derive from it.
"""

import json
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from carillon.domain.events import JOB_EVENTS, EventType
from carillon.domain.policies import (
    CatchUp,
    Concurrency,
    InitialState,
    Lane,
    OnComplete,
    Overlap,
    Priority,
    Rate,
    ResultKept,
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
from carillon.domain.spec.names import folded, is_job_id
from carillon.domain.spec.options import Cli
from carillon.domain.spec.schedule_spec import REINDEX as REINDEX
from carillon.domain.spec.schedule_spec import STORED, TimingSpec
from carillon.domain.targets import Target

MOST_TAGS = 20

_EVENTS = [each.value for each in JOB_EVENTS]


def _event(value: object) -> EventType:
    if value not in _EVENTS:
        raise ValueError(f"must be one of {', '.join(_EVENTS)}")
    return EventType(value)


def _name(name: str) -> str:
    if is_job_id(folded(name)):
        raise ValueError("must not have the form of a job id")
    if not name.isprintable():
        raise ValueError("must have printable characters only, and no other blank than the space")
    return name


def _sorted(tags: dict[str, str]) -> dict[str, str]:
    return dict(sorted(tags.items()))


_NOT_IN_NAMES = r"\x00-\x1f\x7f/\\%?#"
"""Letters that paths, as /jobs/named/{name}, do not carry, or not as they are."""
Name = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        pattern=rf"^[^ .{_NOT_IN_NAMES}](?:[^{_NOT_IN_NAMES}]*[^ {_NOT_IN_NAMES}])?$",
        description="The job's address among yours, whatever its case: printable characters, none "
        "of `/`, `\\`, `%`, `?` and `#`, no space at an end, no dot at the beginning, and not the "
        "form of a job id.",
        examples=["nightly report"],
    ),
    AfterValidator(_name),
]
JobEvent = Annotated[
    EventType, BeforeValidator(_event), WithJsonSchema({"type": "string", "enum": _EVENTS})
]
TagKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
TagValue = Annotated[str, Field(max_length=256, pattern=r"^[^\x00-\x1f\x7f,]*$")]
TagsPatch = Annotated[dict[TagKey, TagValue | None], Field(max_length=2 * MOST_TAGS)]
TargetPatch = dict[str, Any]


class JobSpec(TimingSpec):
    """A job to be created, or as it is to be after a change: with a schedule, or `after` another
    job.

    `on_complete` decides what becomes of it when its last run has ended and no occurrence is left:
    it is kept and shows as completed, or goes. `timeout_seconds` null is the default: half the
    interval of an `every` schedule, else 10 s. `template`: strings of the payload may have
    placeholders such as `{{fire_at}}`. `on_success` and `on_failure` are called about each run that
    succeeded, or became a dead letter. Null is the default of optional members.
    """

    name: Annotated[Name, Cli("--name", "What you call the job.")]
    description: Annotated[
        str | None,
        Field(min_length=1, max_length=1024, description="What it is for, in your words."),
        Cli("--description", "What it is for, in your words.", "Labels and events"),
    ] = None
    target: Annotated[
        Target,
        PatchedAs(TargetPatch),
        Cli(
            "--target",
            "... or this: the ARN of a function, queue, topic or state machine; or JSON, which "
            "buses, ECS and Batch need.",
            "What is called",
        ),
    ]
    payload: Annotated[
        JsonText, Cli("--payload", "JSON, @FILE, or @- for stdin.", "What is called")
    ] = "null"
    template: Annotated[
        Flag, Cli("--template", "Whether the payload has {{placeholders}}.", "What is called")
    ] = False
    priority: Annotated[
        Priority, REINDEX, Cli("--priority", "high, normal or low.", panel="Policies")
    ] = Lane.NORMAL
    catch_up: Annotated[
        CatchUp,
        REINDEX,
        Cli(
            "--catch-up",
            "What an outage of ticks or executors missed: skip, latest or all.",
            "Policies",
        ),
    ] = CatchUp.LATEST
    grace: Annotated[
        int | None,
        Seconds(
            1, 14 * DAY_SECONDS, "How late an occurrence may start; `catch_up` decides about later."
        ),
        REINDEX,
        Cli("--grace", 'How late is not missed yet, as "5m"; 1 minute without.', "Policies"),
    ] = None
    overlap: Annotated[
        Overlap, Cli("--overlap", "While a run is active: allow, skip or queue_one.", "Policies")
    ] = Overlap.ALLOW
    tolerance: Annotated[
        int | None,
        Seconds(
            0,
            366 * DAY_SECONDS,
            "Least spacing, of an `every` schedule: what would start before the last start + "
            "interval - tolerance is skipped. Less than the interval.",
        ),
        Cli(
            "--tolerance",
            "Drop a run that starts sooner after the last one than the interval less this.",
            "Policies",
        ),
    ] = None
    concurrency: Annotated[
        Concurrency | None,
        Cli(
            "--concurrency",
            "At most LIMIT runs at once of all jobs with the KEY.",
            "Policies",
            metavar="KEY=LIMIT",
        ),
    ] = None
    rate: Annotated[
        Annotated[Rate, NullsAreDefaults()] | None,
        Cli(
            "--rate",
            "At most LIMIT starts per duration, as 60/1m; of all jobs with the KEY, if any.",
            "Policies",
            metavar="[KEY=]LIMIT/PER",
        ),
    ] = None
    retry: Annotated[RetryPolicy, NullsAreDefaults()] = RetryPolicy()
    # The deployment's own limit is lower still: the executor's timeout less 5 s.
    timeout_seconds: Annotated[
        int | None,
        Field(ge=1, le=895, strict=True),
        Cli("--timeout", "Time limit of one attempt, in seconds.", "Attempts"),
    ] = None
    pause_after_failures: Annotated[
        int | None,
        Field(
            ge=1,
            le=20,
            strict=True,
            description="So many scheduled runs that end as dead letters, without a success "
            "between, pause the job.",
        ),
        Cli(
            "--pause-after-failures", "Pause the job after so many dead runs in a row.", "Policies"
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
        Cli(
            "--expect-within",
            'Say when no success is recorded so long after a fire time, as "10m".',
            "Policies",
        ),
    ] = None
    on_success: Annotated[
        Target | None,
        PatchedAs(TargetPatch),
        Cli(
            "--on-success",
            "Call this when a run succeeds: a task, URL, ARN, or JSON.",
            "What is called",
        ),
    ] = None
    on_failure: Annotated[
        Target | None,
        PatchedAs(TargetPatch),
        Cli(
            "--on-failure",
            "Call this when a run is dead: a task, URL, ARN, or JSON.",
            "What is called",
        ),
    ] = None
    events: Annotated[
        tuple[JobEvent, ...],
        Field(max_length=len(_EVENTS), description="The events that are put on the event bus."),
        UniqueValues,
        Cli("--event", "Publish this event, as run.dead; repeatable.", "Labels and events"),
    ] = ()
    result: Annotated[
        ResultKept,
        Field(
            description="What is kept of a run's result: its beginning, 512 bytes on one line; or "
            "all of it, up to 32 KB, which takes a write of its own when it is longer."
        ),
        Cli("--result", "Of a result keep its beginning, or full: up to 32 KB.", "Attempts"),
    ] = ResultKept.BEGINNING
    on_complete: Annotated[
        OnComplete, Cli("--on-complete", "When no occurrence is left: keep (the job) or delete.")
    ] = OnComplete.KEEP
    initial_state: Annotated[
        InitialState,
        Field(description="Counts when the job is created, or again after it was deleted."),
        Cli("--initial-state", "active, or paused: it fires once it is resumed."),
    ] = InitialState.ACTIVE
    parent: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=128,
            pattern=PLAIN,
            description="What the job belongs to: jobs are listed, paused and deleted by it.",
        ),
        Cli(
            "--parent",
            "What the job belongs to; jobs can be chosen by it.",
            "Labels and events",
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
        Cli("--tag", "KEY=VALUE; repeatable.", "Labels and events"),
    ] = Field(default_factory=dict)

    def __hash__(self) -> int:
        # pydantic's own would take every member, of which some are lists and mappings.
        return hash((self.name, self.payload, self.parent))

    @property
    def document(self) -> dict[str, Any]:
        """Its body with every member, in JSON's types."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def text(self) -> str:
        """The document as it is stored."""
        return compact_json(self.document)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """The spec that `text` made, now or in another version: members that this one does not
        know are ignored. A bound may be widened, never tightened: a stored spec beyond it could
        not be read. Raises pydantic.ValidationError, a ValueError."""
        return cls.model_validate(json.loads(text), context=STORED, extra="ignore")


def members_marked(mark: object) -> tuple[str, ...]:
    """The names of the settings that carry a mark."""
    return tuple(name for name, field in JobSpec.model_fields.items() if mark in field.metadata)
