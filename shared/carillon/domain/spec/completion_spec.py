"""The setting of a target that lets its run end later, by a report."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from carillon.domain.spec.fields import DAY_SECONDS, Seconds
from carillon.schedules import format_duration

LONGEST_SECONDS = 14 * DAY_SECONDS
_SHORTEST_SECONDS = 10


class CompletionSpec(BaseModel):
    """An attempt ends when somebody reports that it is complete or has failed: `within` is counted
    from its start, `heartbeat` is the longest silence, by default as long."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    within: Annotated[
        int,
        # The default as documents spell it.
        Field(json_schema_extra={"default": format_duration(DAY_SECONDS)}),
        Seconds(_SHORTEST_SECONDS, LONGEST_SECONDS, "How long after its start it must have ended."),
    ] = DAY_SECONDS
    heartbeat: Annotated[
        int | None,
        Seconds(_SHORTEST_SECONDS, LONGEST_SECONDS, "The longest time without a report."),
    ] = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.silence_seconds > self.within:
            raise ValueError("heartbeat must not be longer than within: omit it, or shorten it")
        return self

    @property
    def silence_seconds(self) -> int:
        """The longest time without a report, in seconds."""
        return self.within if self.heartbeat is None else self.heartbeat
