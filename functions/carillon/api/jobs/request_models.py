"""Bodies and filters of requests about jobs, besides the settings: changes of these, and
filters."""

import re
from typing import TYPE_CHECKING, Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query

from carillon.domain.spec.fields import Document
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

NameQuery = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=128,
        description="Only jobs with names that begin so, whatever their case.",
    ),
]

_TAG = re.compile(r"([A-Za-z0-9_.-]{1,64}):([^\x00-\x1f\x7f,]{0,256})", re.ASCII)


def filter_of(parent: str | None, tag: str | None, name: str | None = None) -> JobFilter | None:
    """The filter, None where nothing is given; raises InvalidFieldError on `tag`."""
    if parent is None and tag is None and name is None:
        return None
    return JobFilter(parent or "", _tags(tag) if tag else (), name or "")


def required_filter(parent: str | None, tag: str | None) -> JobFilter:
    """The filter; raises InvalidFieldError for an empty one: that would be all jobs."""
    only = filter_of(parent, tag)
    if only is None:
        raise InvalidFieldError("parent", "is required, or tag: say which jobs")
    return only


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
