"""The body of an apply, and its answer."""

from typing import Annotated, Any

from pydantic import Field

from carillon.domain.spec.fields import Document, Flag
from carillon.domain.spec.job_spec import Name
from carillon.domain.spec.names import MANIFEST_NAME_PATTERN

MOST_ITEMS = 1_000
MOST_KEPT = 10_000
Members = dict[str, Any]


class ApplyBody(Document):
    """Jobs and calendars by name as the manifest wants them, each as the body of its PUT; a job may
    have `was`, the name that it had before.

    With `keep` and neither jobs nor calendars it is a prune: all other jobs that the manifest
    manages are deleted. `dry_run` only answers the plan, `expect` is the digest of the one that was
    reviewed: any other is refused. `force` overwrites what others have changed since the last
    apply, `adopt` takes over jobs that this manifest does not manage.
    """

    manifest: Annotated[
        str,
        Field(pattern=MANIFEST_NAME_PATTERN, description="The manifest that manages the jobs."),
    ]
    jobs: Annotated[dict[str, Members], Field(max_length=MOST_ITEMS)] = Field(default_factory=dict)
    calendars: Annotated[dict[str, Members], Field(max_length=MOST_ITEMS)] = Field(
        default_factory=dict
    )
    keep: Annotated[list[Name] | None, Field(max_length=MOST_KEPT)] = None
    dry_run: Flag = False
    force: Flag = False
    adopt: Flag = False
    expect: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
