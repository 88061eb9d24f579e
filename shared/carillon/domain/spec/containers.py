"""Containers as targets: their members, the variables that they get of a run, and AWS's limit."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from carillon.clock import utc_text
from carillon.domain.policies import MOST_ATTEMPTS
from carillon.domain.templates import TemplateValues

OVERRIDES_LIMIT_CHARACTERS = 8192
"""AWS's, on all that a call changes of a container, with JSON's own characters."""
BATCH_RESERVE_CHARACTERS = 1024
"""Batch adds variables of its own, with the names of its queue and compute environment."""
LONGEST_RUN_ID = 128
"""Characters: with a job id, a fire time, a request's digest and the number of a redrive."""

_OURS = "CARILLON_"
_TRACEPARENT = "TRACEPARENT"
_RESERVED = (_OURS, "AWS_BATCH_", _TRACEPARENT, "TRACESTATE")


def _free_names(environment: dict[str, str]) -> dict[str, str]:
    for name in environment:
        if name.startswith(_RESERVED):
            owners = f"Carillon sets {_OURS}… and {_TRACEPARENT}, Batch AWS_BATCH_…"
            raise ValueError(f"must not set {name!r}: {owners}")
    return environment


_VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
_Value = Annotated[str, Field(max_length=4096)]
Environment = Annotated[
    dict[_VariableName, _Value], Field(max_length=50), AfterValidator(_free_names)
]
Parameters = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=128)], _Value], Field(max_length=50)
]
Command = Annotated[tuple[_Value, ...], Field(max_length=100)]
EcsName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,255}$")]
"""Of a container, or of a capacity provider."""
SubnetIds = Annotated[
    tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...], Field(max_length=16)
]
SecurityGroupIds = Annotated[
    tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...], Field(max_length=5)
]


LONGEST_REPORT = ("u" * 256, "t" * 400)
"""Address and token for a report: of an owner of 256 bytes, and the longest run id."""
LONGEST_TRACEPARENT = "0" * 55
"""W3C's only form."""


def run_variables(
    values: TemplateValues,
    payload: str,
    report_to: tuple[str, str] | None = None,
    traceparent: str = "",
) -> dict[str, str]:
    """The variables of the environment by which a container knows its run, and `report_to`, where
    and by which token its end is reported. OpenTelemetry's SDKs read `traceparent` there."""
    names = ("CARILLON_COMPLETION_URL", "CARILLON_COMPLETION_TOKEN")
    return {
        **dict(zip(names, report_to or (), strict=False)),
        **({_TRACEPARENT: traceparent} if traceparent else {}),
        "CARILLON_RUN_ID": values.run_id,
        "CARILLON_JOB_ID": values.job_id,
        "CARILLON_JOB_NAME": values.job_name,
        "CARILLON_ATTEMPT": str(values.attempt),
        "CARILLON_FIRE_AT": utc_text(values.fire_at),
        "CARILLON_PAYLOAD": payload,
    }


def longest_values(job_name: str, tags: Mapping[str, str]) -> TemplateValues:
    """Values as long as those of any run of such a job, callbacks apart."""
    return TemplateValues(
        fire_at=datetime.max.replace(microsecond=0, tzinfo=UTC),
        effective_at=datetime.max.replace(microsecond=0, tzinfo=UTC),
        run_id="r" * LONGEST_RUN_ID,
        attempt=MOST_ATTEMPTS,
        job_id="j" * 26,
        job_name=job_name,
        tags=tags,
    )


def overrides_of(
    environment: Mapping[str, str], variables: Mapping[str, str], **others: Any
) -> dict[str, Any]:
    """The changes of a container; `variables` win over the target's own `environment`."""
    merged = {**environment, **variables}
    pairs = [{"name": name, "value": value} for name, value in merged.items()]
    return {"environment": pairs, **{name: value for name, value in others.items() if value}}


def refuse_excess(overrides: object, reserve_characters: int = 0) -> None:
    """Raises ValueError for overrides that AWS would refuse.

    They are counted as they are sent, where a letter beyond ASCII is six characters.
    """
    most = OVERRIDES_LIMIT_CHARACTERS - reserve_characters
    size = len(json.dumps(overrides))
    if size > most:
        raise ValueError(
            f"makes {size} characters of variables and command for the container, of which AWS "
            f"takes {most}: send a reference to it instead"
        )
