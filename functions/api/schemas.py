"""What requests carry about jobs: pydantic models; unknown fields are refused."""

from typing import Annotated, Any

from pydantic import Field

from functions.api.calendar_bodies import CalendarChoice
from functions.api.schedule_fields import (
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
from shared.domain.job import Lane
from shared.domain.policies import CatchUp, OnComplete, RetryPolicy
from shared.domain.targets import Target
from shared.recurrence import CalendarRule, Fold, Gap

LARGEST_COUNT = 100
"""Occurrences that one answer lists."""

Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"\S")]
Attempts = Annotated[int, Field(ge=1, le=100, strict=True)]
BaseSeconds = Annotated[int, Field(ge=1, le=86_400, strict=True)]
Factor = Annotated[float, Field(ge=1, le=100, strict=True)]
CapSeconds = Annotated[int, Field(ge=1, le=604_800, strict=True)]
TimeoutSeconds = Annotated[int, Field(ge=1, le=895, strict=True)]
"""The deployment's own limit is lower still: the executor's timeout less 5 s."""

_RETRY = RetryPolicy()


class BackoffForm(Document):
    """Delays before retries: random below base * factor ** (failed attempts - 1), capped."""

    base_seconds: BaseSeconds = _RETRY.backoff.base_seconds
    factor: Factor = _RETRY.backoff.factor
    cap_seconds: CapSeconds = _RETRY.backoff.cap_seconds


class RetryForm(Document):
    max_attempts: Attempts = _RETRY.max_attempts
    backoff: BackoffForm = BackoffForm()


class JobBody(ScheduleFields):
    """A job to be created, or as it is to be after a change.

    `on_complete` says what becomes of it when its last run has ended and no occurrence is left:
    it is kept and shows as completed, or goes.
    """

    name: Name
    target: Target
    payload: Any = None
    lane: Lane = Lane.NORMAL
    catch_up: CatchUp = CatchUp.LATEST
    retry: RetryForm = RetryForm()
    timeout_seconds: TimeoutSeconds | None = None
    on_complete: OnComplete = OnComplete.KEEP
    window: WindowText | None = None
    calendar: CalendarUseForm | None = None


class BackoffPatch(Document):
    base_seconds: BaseSeconds | None = None
    factor: Factor | None = None
    cap_seconds: CapSeconds | None = None


class RetryPatch(Document):
    max_attempts: Attempts | None = None
    backoff: BackoffPatch | None = None


class DstPatch(Document):
    gap: Gap | None = None
    fold: Fold | None = None


class CalendarUsePatch(Document):
    name: CalendarName | None = None
    rule: CalendarRule | None = None


class JobPatch(Document):
    """What is to change: absent fields stay, null sets a field to its default.

    The members of `retry`, `dst`, `calendar`, and of `target` while its type stays, are merged one
    by one; `schedule`, `except` and `payload` are replaced whole.
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
    lane: Lane | None = None
    catch_up: CatchUp | None = None
    retry: RetryPatch | None = None
    timeout_seconds: TimeoutSeconds | None = None
    on_complete: OnComplete | None = None
    window: WindowText | None = None
    calendar: CalendarUsePatch | None = None


class PreviewBody(ScheduleFields):
    """A schedule to look at; nothing is stored. `after` is now unless given; `max_runs` counts
    from it. `calendar` is one of yours, or its closed days said here."""

    window: WindowText | None = None
    calendar: CalendarChoice | None = None
    after: Instant | None = None
    count: Annotated[int, Field(ge=1, le=LARGEST_COUNT, strict=True)] = 5
