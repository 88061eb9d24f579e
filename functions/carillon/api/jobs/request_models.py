"""What requests carry about jobs: pydantic models; unknown fields are refused."""

from typing import Annotated, Any

from pydantic import Field

from carillon.api.calendars.models import CalendarChoice
from carillon.api.jobs.policy_models import (
    MOST_TAGS,
    ConcurrencyForm,
    ConcurrencyPatch,
    ExpectWithin,
    FailuresToPause,
    Flag,
    Grace,
    JobEvents,
    Parent,
    RateForm,
    RatePatch,
    RetryForm,
    RetryPatch,
    TagKey,
    Tags,
    TagValue,
    TimeoutSeconds,
    Tolerance,
)
from carillon.api.schedules.request_models import (
    CalendarName,
    CalendarUseForm,
    Document,
    EndAt,
    Exceptions,
    Instant,
    MaxRuns,
    ScheduleChange,
    ScheduleFields,
    StartAt,
    WindowText,
    ZoneName,
)
from carillon.domain.job import Lane, Priority
from carillon.domain.policies import CatchUp, OnComplete, Overlap
from carillon.domain.targets import Target
from carillon.schedules import CalendarRule, Fold, Gap

LARGEST_COUNT = 100
"""Occurrences that one answer lists."""

Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"\S")]


TARGETS = ("target", "on_success", "on_failure")
"""A change merges these member by member while they keep their type, and their headers one by one;
what a member or a header holds is replaced whole."""


class JobBody(ScheduleFields):
    """A job to be created, or as it is to be after a change.

    `on_complete` says what becomes of it when its last run has ended and no occurrence is left:
    it is kept and shows as completed, or goes. `timeout_seconds` null is the default: half the
    interval of an `every` schedule, else 10 s. `template`: strings of the payload may have
    placeholders such as `{{fire_at}}`. `on_success` and `on_failure` are called about each run that
    succeeded, or became a dead letter. Null is the default of whatever need not be said.
    """

    name: Name
    target: Target
    payload: Any = None
    template: Flag = False
    priority: Priority = Lane.NORMAL
    catch_up: CatchUp = CatchUp.LATEST
    grace: Grace | None = None
    overlap: Overlap = Overlap.ALLOW
    tolerance: Tolerance | None = None
    concurrency: ConcurrencyForm | None = None
    rate: RateForm | None = None
    retry: RetryForm = RetryForm()
    timeout_seconds: TimeoutSeconds | None = None
    pause_after_failures: FailuresToPause | None = None
    expect_within: ExpectWithin | None = None
    on_success: Target | None = None
    on_failure: Target | None = None
    events: JobEvents = ()
    on_complete: OnComplete = OnComplete.KEEP
    window: WindowText | None = None
    calendar: CalendarUseForm | None = None
    parent: Parent | None = None
    tags: Tags = Field(default_factory=dict)


class DstPatch(Document):
    gap: Gap | None = None
    fold: Fold | None = None


class CalendarUsePatch(Document):
    name: CalendarName | None = None
    rule: CalendarRule | None = None


class JobPatch(Document):
    """What is to change: absent fields stay, null sets a field to its default.

    The members of `retry`, `dst`, `calendar`, `concurrency`, `rate`, `tags`, and of a target while
    its type stays, are merged one by one, and a target's headers, too; all others are replaced
    whole: the value of a header, a secret.
    """

    name: Name | None = None
    schedule: ScheduleChange = None
    except_: Exceptions = Field(default=None, alias="except")
    timezone: ZoneName | None = None
    start_at: StartAt = None
    end_at: EndAt = None
    max_runs: MaxRuns | None = None
    dst: DstPatch | None = None
    target: dict[str, Any] | None = None
    payload: Any = None
    template: Flag | None = None
    priority: Priority | None = None
    catch_up: CatchUp | None = None
    grace: Grace | None = None
    overlap: Overlap | None = None
    tolerance: Tolerance | None = None
    concurrency: ConcurrencyPatch | None = None
    rate: RatePatch | None = None
    retry: RetryPatch | None = None
    timeout_seconds: TimeoutSeconds | None = None
    pause_after_failures: FailuresToPause | None = None
    expect_within: ExpectWithin | None = None
    on_success: dict[str, Any] | None = None
    on_failure: dict[str, Any] | None = None
    events: JobEvents | None = None
    on_complete: OnComplete | None = None
    window: WindowText | None = None
    calendar: CalendarUsePatch | None = None
    parent: Parent | None = None
    tags: Annotated[dict[TagKey, TagValue | None], Field(max_length=2 * MOST_TAGS)] | None = None


class PreviewBody(ScheduleFields):
    """A schedule to look at; nothing is stored. `after` is now unless given; `max_runs` counts
    from it. `calendar` is one of yours, or its closed days said here."""

    window: WindowText | None = None
    calendar: CalendarChoice | None = None
    after: Instant | None = None
    count: Annotated[int, Field(ge=1, le=LARGEST_COUNT, strict=True)] = 5
