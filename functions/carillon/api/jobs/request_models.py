"""Bodies and filters of requests about jobs, besides the settings: changes of these, and
filters."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import Field

from carillon.domain.spec.fields import Document, Instant
from carillon.domain.spec.job_spec import MOST_TAGS, JobSpec
from carillon.domain.spec.merge_patch import partial
from carillon.errors import InvalidFieldError
from carillon.stores.ports import JobFilter

if TYPE_CHECKING:
    JobPatch = Document
else:
    JobPatch = partial(
        "JobPatch",
        JobSpec,
        """What is to change: absent fields stay, null sets a field to its default.

        The members of objects are merged one by one: of a target while its type stays, and its
        headers, too. All others are replaced whole: the value of a header, a secret, a schedule,
        the payload.
        """,
    )

ParentQuery = Annotated[
    str | None,
    Query(min_length=1, max_length=128, description="Only jobs with this `parent`."),
]
TagQuery = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=8192,
        description="Only jobs with these tags, as `key:value`; several are joined by commas, and "
        "a job must have all of them.",
    ),
]

EveryQuery = Annotated[
    bool | None,
    Query(alias="all", description="`true`: all your jobs; those made meanwhile may be left out."),
]
NameQuery = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=128,
        description="Only jobs with names that begin so, whatever their case.",
    ),
]

ManagedQuery = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=512,
        description="Only jobs that this manifest or stack manages, as `manifest/billing`.",
    ),
]

_TAG = re.compile(r"([A-Za-z0-9_.-]{1,64}):([^\x00-\x1f\x7f,]{0,256})", re.ASCII)


def filter_of(
    parent: str | None,
    tag: str | None,
    name: str | None = None,
    managed_by: str | None = None,
    state: str | None = None,
) -> JobFilter | None:
    """The filter, None where nothing is given; raises InvalidFieldError on `tag`."""
    if all(each is None for each in (parent, tag, name, managed_by, state)):
        return None
    tags = _tags(tag) if tag else ()
    return JobFilter(parent or "", tags, name or "", managed_by or "", state or "")


class PauseBody(Document):
    """`reason`: why it is paused; the job's `note` says it. `until`: when it resumes by itself, a
    minute ahead or more; null: when it is resumed."""

    reason: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    until: Instant | None = None


def pause_of(body: PauseBody | None) -> tuple[str, datetime | None]:
    """The reason and the end of a pause, as its request states them."""
    return ("", None) if body is None else (body.reason or "", body.until)


def required_filter(parent: str | None, tag: str | None, every: bool | None = None) -> JobFilter:
    """The filter; raises InvalidFieldError for an empty one, unless it is to be `every` job: a
    caller's unset variable must not choose all."""
    only = filter_of(parent, tag)
    if only is not None and every:
        raise InvalidFieldError("all", "goes without parent and tag")
    if only is None and not every:
        raise InvalidFieldError("parent", "is required, or tag, or all=true: say which jobs")
    return only or JobFilter()


def _tags(text: str) -> tuple[tuple[str, str], ...]:
    tags: dict[str, str] = {}
    for word in text.split(","):
        match = _TAG.fullmatch(word)
        if match is None:
            raise InvalidFieldError(
                "tag", f"must be key:value, several joined by commas, not {word[:100]!r}"
            )
        key, value = match.groups()
        if tags.setdefault(key, value) != value:
            raise InvalidFieldError("tag", f"names {key} with two values: no job has both")
    if len(tags) > MOST_TAGS:
        raise InvalidFieldError("tag", f"must name at most {MOST_TAGS} tags")
    return tuple(sorted(tags.items()))
