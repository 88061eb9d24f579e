"""Bodies of requests and answers about operations: pydantic models."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic_core import CoreSchema

from carillon.api.http.fields import ListForm, UtcTime
from carillon.domain.operation import MOST_PER_MINUTE, Operation, OperationKind, OperationState
from carillon.domain.run import DeadReason, RunStatus
from carillon.domain.spec.fields import Document, Flag, Instant
from carillon.domain.spec.job_spec import MOST_TAGS, TagKey, TagValue
from carillon.domain.spec.teams import TEAM_NAME

PerMinute = Annotated[
    int,
    Field(
        ge=1,
        le=MOST_PER_MINUTE,
        strict=True,
        description="The most runs that start in any minute. (Fewer, if they take longer.)",
    ),
]
JobIdText = Annotated[str, Field(pattern=r"^[0-9a-z]{26}$")]
ErrorKind = Annotated[str, Field(min_length=1, max_length=256)]


class Only(StrEnum):
    ALL = "all"
    MISSED = "missed"


_FILTERS = ("job_id", "reason", "error", "from", "to")


def required_true(value: Any) -> Any:
    if value is not True:  # 1 is equal to it
        raise ValueError("must be true")
    return value


class DeadLetterBody(Document):
    """A choice of dead letters: those that match all given members, or `all`. Neither, or null, is
    refused: a caller's unset variable must not choose more than was meant."""

    all_of_them: Literal[True] | None = Field(
        default=None, alias="all", description="Every dead letter; not beside a filter."
    )
    job_id: JobIdText | None = None
    reason: DeadReason | None = None
    error: ErrorKind | None = Field(
        default=None, description="The kind of the error, such as `http_503` or `timeout`."
    )
    from_at: Instant | None = Field(
        default=None, alias="from", description="The first fire time, inclusive."
    )
    to: Instant | None = Field(default=None, description="The last fire time, inclusive.")
    per_minute: PerMinute = 600

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The body without the nulls, which mean an absent member."""
        schema = handler(core_schema)
        for member in handler.resolve_ref_schema(schema)["properties"].values():
            if "anyOf" in member:
                (form,) = (form for form in member.pop("anyOf") if form != {"type": "null"})
                member.update(form)
        filters = [{"required": [name]} for name in _FILTERS]
        handler.resolve_ref_schema(schema)["oneOf"] = [{"required": ["all"]}, {"anyOf": filters}]
        return schema

    @field_validator("all_of_them", mode="before")
    @classmethod
    def _true(cls, value: Any) -> Any:
        return required_true(value)

    @field_validator("*", mode="before")
    @classmethod
    def _not_null(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("must not be null: leave it out to choose without it")
        return value

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        filters = (self.job_id, self.reason, self.error, self.from_at, self.to)
        if (self.all_of_them is None) == all(member is None for member in filters):
            raise ValueError(f'must say which: {", ".join(_FILTERS)}, or "all": true')
        return self


class BackfillBody(Document):
    """`from` and `to` are fire times, both inclusive, at most 366 days apart and in the past, with
    at most 50,000 occurrences between them. `only: missed` leaves out those with a success, those
    under way, those that somebody has cancelled or discarded, and those so old that a run of them
    is not kept any more."""

    from_at: Instant = Field(alias="from")
    to: Instant
    only: Only = Only.ALL
    per_minute: PerMinute = 60

    @property
    def only_missed(self) -> bool:
        return self.only is Only.MISSED


class HandOverBody(Document):
    """`to` is the team that takes the jobs: those that match all given members, or `all`."""

    to: Annotated[
        str, Field(pattern=f"^{TEAM_NAME}$", description="A team that you are admin of, too.")
    ]
    all_of_them: Literal[True] | None = Field(
        default=None, alias="all", description="Every job; not beside a choice."
    )
    job_id: JobIdText | None = None
    parent: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=MOST_TAGS)] | None = None
    force: Flag = Field(
        default=False,
        description="Jobs that a manifest or stack manages, too: change its team, or it makes them "
        "again.",
    )

    @field_validator("all_of_them", mode="before")
    @classmethod
    def _true(cls, value: Any) -> Any:
        return required_true(value)

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        chosen = (self.job_id, self.parent, self.tags)
        if (self.all_of_them is None) == all(not member for member in chosen):
            raise ValueError('must say which: job_id, parent, tags, or "all": true')
        if self.job_id is not None and (self.parent or self.tags):
            raise ValueError("job_id goes without parent and tags")
        return self


class OperationForm(BaseModel):
    """Work on many runs or jobs, done in steps of half a minute at most.

    `done` counts runs that were sent, or dead letters that were discarded; `passed_over` those that
    needed or allowed nothing. A step that died half-way and was done again may have done more than
    it counts. `reached` is the last fire time that a backfill has dealt with. `job_id` names the
    job of a backfill; of others it is a filter, as are `from`, `to`, `reason` and `error`.

    Of a hand-over `done` counts jobs that are `new_owner`'s by now, and `left` says of the first 20
    of those that stayed why.
    """

    operation_id: str
    kind: OperationKind
    state: OperationState
    job_id: str | None
    from_at: UtcTime | None = Field(alias="from")
    to: UtcTime | None
    only: Only | None
    reason: str | None
    error: str | None
    per_minute: int
    done: int
    passed_over: int
    reached: UtcTime | None
    note: str | None
    new_owner: str | None
    parent: str | None
    tags: dict[str, str] | None
    left: list[str]
    created_at: UtcTime
    updated_at: UtcTime

    @classmethod
    def of(cls, operation: Operation) -> "OperationForm":
        only = None
        if operation.kind is OperationKind.BACKFILL:
            only = Only.MISSED if operation.only_missed else Only.ALL
        members = {
            "operation_id": operation.operation_id,
            "kind": operation.kind,
            "state": operation.state,
            "job_id": operation.job_id or None,
            "from": operation.from_at,
            "to": operation.until_at,
            "only": only,
            "reason": operation.reason or None,
            "error": operation.error or None,
            "per_minute": operation.per_minute,
            "done": operation.done,
            "passed_over": operation.passed_over,
            "reached": operation.reached_at,
            "note": operation.note or None,
            "new_owner": operation.to or None,
            "parent": operation.parent or None,
            "tags": dict(operation.tags) or None,
            "left": list(operation.left),
            "created_at": operation.created_at,
            "updated_at": operation.updated_at,
        }
        return cls(**members)


class OutcomesForm(BaseModel):
    """The number of runs of a backfill in each state, among those of this page; a state without any
    is left out. Runs that were sent and have no row yet wait in their queue."""

    counts: dict[RunStatus, int]
    next_cursor: str | None


class OperationPage(ListForm):
    items: list[OperationForm]
