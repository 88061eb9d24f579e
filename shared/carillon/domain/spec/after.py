"""The setting `after`: a job that runs after the runs of another one, its predecessor."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from carillon.domain.run import DEAD_LETTER, RunStatus
from carillon.domain.spec.fields import DAY_SECONDS, PLAIN, NullsAreDefaults, Seconds
from carillon.domain.spec.merge_patch import PatchedAs, partial
from carillon.domain.spec.options import Cli
from carillon.schedules.durations import format_duration


class Outcome(StrEnum):
    """The ends of its predecessor's runs that a job runs after."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """Dead, or timed out."""
    FINISHED = "finished"
    """Either of these: not skipped, and not cancelled."""

    def fits(self, status: RunStatus) -> bool:
        """True if a run that has ended so starts the job."""
        match self:
            case Outcome.SUCCEEDED:
                return status is RunStatus.SUCCEEDED
            case Outcome.FAILED:
                return status in DEAD_LETTER
            case Outcome.FINISHED:
                return status is RunStatus.SUCCEEDED or status in DEAD_LETTER


@dataclass(frozen=True, slots=True)
class After:
    """The job runs once after each run of the job of this name that ends so."""

    job: Annotated[
        str,
        Field(
            min_length=1,
            max_length=128,
            pattern=PLAIN,
            description="The name of another job of yours, which has a schedule of its own.",
            examples=["nightly export"],
        ),
    ]
    when: Annotated[Outcome, Field(description="The end of its run.")] = Outcome.SUCCEEDED
    within: Annotated[
        int | None,
        Seconds(
            1,
            14 * DAY_SECONDS,
            "A run of it that ends later than so long after its effective time is followed by a "
            "skipped run.",
        ),
    ] = None

    @property
    def sentence(self) -> str:
        """The setting in words: `after nightly export succeeded within 2h`."""
        limit = "" if self.within is None else f" within {format_duration(self.within)}"
        return f"after {self.job} {self.when.value}{limit}"


class _NameAlone:
    """Marks a document that may be given as text, which is its member `job`."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda given: {"job": given} if isinstance(given, str) else given, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = handler(schema)
        if handler.mode == "serialization":
            return made
        text = {"type": "string", "minLength": 1, "maxLength": 128}
        return {"anyOf": [text, made]}


_PATCH: Any = Annotated[partial("AfterPatch", After), _NameAlone()]
AfterSetting = Annotated[
    Annotated[After, NullsAreDefaults(), _NameAlone()] | None,
    Field(
        description="In the place of a schedule: the job that it runs after, by its name alone or "
        "with the end that counts."
    ),
    PatchedAs(_PATCH),
    Cli(
        "--after",
        "Run after each run of another job: NAME, or NAME:WHEN (succeeded, the default, failed "
        "or finished); or JSON.",
        metavar="NAME[:WHEN]",
    ),
]
