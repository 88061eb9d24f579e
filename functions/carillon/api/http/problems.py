"""Refusals, and how each is answered as a problem of RFC 9457."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestUnsupportedContentType,
    RequestValidationError,
)
from pydantic import BaseModel, Field

from carillon.api.http.fields import MOST_ERRORS, field_errors
from carillon.domain.quotas import Exceeded, Quota, QuotaExceededError
from carillon.errors import (
    CarillonError,
    InvalidFieldError,
    QueueUnavailableError,
    StoreUnavailableError,
    UnreadableRowError,
)
from carillon.telemetry import Action, Telemetry


class InvalidFieldsError(CarillonError):
    """`errors` are pairs: a field's path in the request, and its fault."""

    def __init__(self, errors: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {message}" for field, message in errors))
        self.errors = tuple(errors)


def refuse_all(*checks: Callable[[], None]) -> None:
    """Make every check; raises InvalidFieldsError with the errors of all of them."""
    errors: list[tuple[str, str]] = []
    for check in checks:
        try:
            check()
        except InvalidFieldError as error:
            errors.append((error.field, error.message))
        except InvalidFieldsError as error:
            errors.extend(error.errors)
    if errors:
        raise InvalidFieldsError(errors)


class PayloadTooLargeError(CarillonError):
    """`field` takes `size_bytes` where `limit_bytes` are allowed."""

    def __init__(self, field: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"{field} takes {size_bytes} bytes; the limit is {limit_bytes} bytes")
        self.field = field


class MissingError(CarillonError):
    """The owner has no `kind` (job, run, calendar) of that id; others' are not disclosed."""

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"you have no {kind} {identifier[:200]!r}")


class NameTakenError(CarillonError):
    """The owner has another job of the name."""

    def __init__(self, name: str, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(
            f"you have a job named {name!r}, {job_id}: use another name, or change that one "
            "(PUT /jobs/named/{name} creates or replaces)"
        )


class ManagedError(CarillonError):
    """The job is another's to change: `managed_by`'s, or where that is "" its owner's alone."""

    def __init__(self, name: str, managed_by: str, wanted: str = "") -> None:
        self.managed_by = managed_by
        if not wanted:
            super().__init__(
                f"job {name!r} is managed by {managed_by}: change it there, or use force=true, "
                "which the next apply reports as drift"
            )
            return
        by = f"managed by {managed_by}" if managed_by else "not managed by any manifest"
        super().__init__(f"job {name!r} is {by}: adopt=true takes it over for {wanted}")


class DriftError(CarillonError):
    """Settings of the job differ from those that its manager has applied last."""

    def __init__(self, name: str, revision: int, author: str) -> None:
        super().__init__(
            f"job {name!r} differs from what was applied; {author} made its revision {revision}, "
            "the latest: force=true overwrites what differs"
        )


class PlanChangedError(CarillonError):
    """The plan is not the one that was reviewed."""

    def __init__(self, expected: str, digest: str) -> None:
        super().__init__(f"the plan's digest is {digest}, not {expected}: review it again")


class KeyReusedError(CarillonError):
    def __init__(self, identifier: str, kind: str = "job") -> None:
        super().__init__(f"the key created {kind} {identifier} from another body: use a new key")


class KeyGoneError(CarillonError):
    def __init__(self, job_id: str, has_completed: bool = False) -> None:
        end = "has completed" if has_completed else "was deleted"
        super().__init__(f"the key created job {job_id}, which {end}: use a new key")


class RevisionMismatchError(CarillonError):
    """`current` is the revision that is stored, None when there is no such thing."""

    def __init__(self, expected: int | None, current: int | None, kind: str = "job") -> None:
        if current is None:
            super().__init__(f"there is no such {kind}")
            return
        wanted = "and was changed just now" if expected is None else f"not {expected}"
        super().__init__(f"the {kind} is at revision {current}, {wanted}: read it again")


class AlreadyThereError(CarillonError):
    """The owner has a `kind` of that name, at `revision`."""

    def __init__(self, kind: str, name: str, revision: int) -> None:
        super().__init__(f"you have a {kind} {name!r} already, at revision {revision}")


class CalendarInUseError(CarillonError):
    """`job_ids` are jobs that follow the calendar; there may be more of them."""

    def __init__(self, name: str, job_ids: Sequence[str]) -> None:
        shown = ", ".join(job_ids[:3]) + (", …" if len(job_ids) > 3 else "")
        super().__init__(
            f"calendar {name!r} is followed by {len(job_ids)} of your jobs ({shown}): "
            "change these first"
        )
        self.job_ids = tuple(job_ids)


class ContendedError(CarillonError):
    def __init__(self, identifier: str, kind: str = "job") -> None:
        super().__init__(f"{kind} {identifier} was being changed by other requests: try again")


class NotCancellableError(CarillonError):
    """`reason` is the state of the run instead; when to ask again, if it may be cancelled soon."""

    def __init__(self, run_id: str, reason: str, again_after_seconds: int | None) -> None:
        super().__init__(f"run {run_id} {reason}")
        self.headers = {"Retry-After": str(again_after_seconds)} if again_after_seconds else {}


class NotADeadLetterError(CarillonError):
    """`why` is the state of the run instead."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"run {run_id} cannot be settled: {why}")


class JobGoneError(CarillonError):
    """`gone` is the job of the run, or the notification of a delivery."""

    def __init__(self, run_id: str, gone: str) -> None:
        super().__init__(f"run {run_id} cannot be redriven: {gone} was deleted")


class OperationEndedError(CarillonError):
    def __init__(self, operation_id: str, state: str) -> None:
        super().__init__(f"operation {operation_id} has {state} and cannot be cancelled")


CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 2


class Kind(Enum):
    """The closed list of problems: the end of the `type`, the status, the `title`."""

    INVALID_JSON = ("invalid-json", 400, "The body is not JSON that can be stored")
    INVALID_HEADER = ("invalid-header", 400, "A header cannot be read")
    UNAUTHENTICATED = ("unauthenticated", 401, "The request has no owner")
    NOT_A_MEMBER = ("not-a-member", 403, "The caller is no member of the team")
    TEAM_REQUIRED = ("team-required", 403, "No team is named")
    ROLE_TOO_LOW = ("role-too-low", 403, "The caller's role does not allow it")
    NOT_FOUND = ("not-found", 404, "Not found")
    METHOD_NOT_ALLOWED = ("method-not-allowed", 405, "The resource does not have this method")
    CONTENDED = ("contended", 409, "Other requests changed it meanwhile")
    NOT_CANCELLABLE = ("not-cancellable", 409, "The run cannot be cancelled")
    REPORT_REFUSED = ("report-refused", 409, "The attempt has ended otherwise")
    NOT_A_DEAD_LETTER = ("not-a-dead-letter", 409, "The run is not a dead letter")
    JOB_GONE = ("job-gone", 409, "The run's job was deleted")
    OPERATION_ENDED = ("operation-ended", 409, "The operation has ended")
    NAME_TAKEN = ("name-taken", 409, "There is a job of this name")
    MANAGED = ("managed", 409, "The job is managed elsewhere")
    DRIFT = ("drift", 409, "The job was changed since it was applied")
    QUOTA_EXCEEDED = ("quota-exceeded", 409, "The owner has used up a quota")
    PLAN_CHANGED = ("plan-changed", 409, "The plan is not the one that was reviewed")
    CALENDAR_IN_USE = ("calendar-in-use", 409, "Jobs follow the calendar")
    GONE = ("gone", 410, "The job of this idempotency key is gone")
    REVISION_MISMATCH = ("revision-mismatch", 412, "It is at another revision")
    TOO_LARGE = ("too-large", 413, "The request is too large")
    UNSUPPORTED_MEDIA_TYPE = ("unsupported-media-type", 415, "The body must be application/json")
    INVALID_FIELD = ("invalid-field", 422, "A field of the request cannot be used")
    KEY_REUSED = ("idempotency-key-reused", 422, "The idempotency key was used for another request")
    REVISION_REQUIRED = ("revision-required", 428, "The change must name the revision it is for")
    TOO_MANY_REQUESTS = ("too-many-requests", 429, "The owner sends too many requests")
    INTERNAL = ("internal", 500, "Something went wrong here")
    UNAVAILABLE = ("unavailable", 503, "Not available for the moment")

    def __init__(self, slug: str, status: int, title: str) -> None:
        self.slug = slug
        self.status = status
        self.title = title

    @property
    def uri(self) -> str:
        return f"urn:carillon:problem:{self.slug}"


class FieldProblem(BaseModel):
    """`field` is a path in the body (`schedule.every`, `ranges[3].to`), or the name of a query
    parameter or a header; where a calendar is in use, the path of a job that follows it."""

    field: str
    message: str


class ExceededForm(BaseModel):
    """The quota that is used up: its limit, and how much of it was in use."""

    name: Quota
    limit: int
    use: int | float


class Problem(BaseModel):
    """The reason why a request was refused (RFC 9457); with the `quota`, if that is one."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FieldProblem]
    quota: ExceededForm | None = Field(default=None, exclude_if=lambda quota: quota is None)


class ProblemError(Exception):
    """A refusal that HTTP itself knows of; `errors` are pairs of field and message."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        errors: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        exceeded: Exceeded | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.exceeded = exceeded


def unavailable(detail: str) -> ProblemError:
    """The refusal of what may be asked again soon."""
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return ProblemError(Kind.UNAVAILABLE, detail, headers=headers)


def problem_of(error: Exception) -> ProblemError:
    """The HTTP form of an error; an unforeseen one is answered without its text."""
    match error:
        case ProblemError():
            return error
        case RequestValidationError():
            return invalid_fields(field_errors(list(error.errors()), prefixed=True))
        case InvalidFieldError():
            return invalid_fields([(error.field, error.message)])
        case InvalidFieldsError():
            return invalid_fields(error.errors)
        case PayloadTooLargeError():
            return ProblemError(Kind.TOO_LARGE, str(error), [(error.field, str(error))])
        case CalendarInUseError():
            followed = [(f"/jobs/{job_id}", "follows it") for job_id in error.job_ids[:MOST_ERRORS]]
            return ProblemError(Kind.CALENDAR_IN_USE, str(error), followed)
        case RequestUnsupportedContentType():
            return unsupported_media_type()
        case NotCancellableError():
            return ProblemError(Kind.NOT_CANCELLABLE, str(error), headers=error.headers)
        case QuotaExceededError():
            return ProblemError(Kind.QUOTA_EXCEEDED, str(error), exceeded=error.exceeded)
        case UnreadableRowError():
            # Time does not mend it: who reads this must know what to mend.
            return ProblemError(Kind.UNAVAILABLE, str(error))
        case StoreUnavailableError() | QueueUnavailableError():
            return unavailable("the request may have had an effect or not: repeat it")
    for refusal, kind, field in _REFUSALS:
        if isinstance(error, refusal):
            errors = [(field, str(error))] if field else []
            return ProblemError(kind, str(error), errors)
    return ProblemError(Kind.INTERNAL, "the request may have had an effect or not")


_REFUSALS: tuple[tuple[type[Exception], Kind, str], ...] = (
    (MissingError, Kind.NOT_FOUND, ""),
    (NameTakenError, Kind.NAME_TAKEN, "name"),
    (ManagedError, Kind.MANAGED, ""),
    (DriftError, Kind.DRIFT, ""),
    (PlanChangedError, Kind.PLAN_CHANGED, "expect"),
    (KeyReusedError, Kind.KEY_REUSED, "Idempotency-Key"),
    (KeyGoneError, Kind.GONE, "Idempotency-Key"),
    (RevisionMismatchError, Kind.REVISION_MISMATCH, "If-Match"),
    (AlreadyThereError, Kind.REVISION_MISMATCH, "If-None-Match"),
    (ContendedError, Kind.CONTENDED, ""),
    (NotADeadLetterError, Kind.NOT_A_DEAD_LETTER, ""),
    (JobGoneError, Kind.JOB_GONE, ""),
    (OperationEndedError, Kind.OPERATION_ENDED, ""),
)


def invalid_fields(errors: Sequence[tuple[str, str]]) -> ProblemError:
    detail = "; ".join(f"{field} {message}" for field, message in errors[:3])
    more = len(errors) - 3
    return ProblemError(
        Kind.INVALID_FIELD, detail + (f"; and {more} more" if more > 0 else ""), errors
    )


def unsupported_media_type() -> ProblemError:
    return ProblemError(Kind.UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json")


def problem_members(problem: ProblemError, instance: str) -> dict[str, Any]:
    """The members of the problem in JSON; `instance` is the request's path."""
    kind, told = problem.kind, problem.exceeded
    quota = told and {"name": told.quota.value, "limit": told.limit, "use": told.use}
    return {
        "type": kind.uri,
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail,
        "instance": instance,
        "errors": [{"field": field, "message": message} for field, message in problem.errors],
        **({"quota": quota} if quota else {}),
    }


def problem_response(problem: ProblemError, instance: str) -> Response[str]:
    """The answer to a refused request; `instance` is its path."""
    return Response(
        status_code=problem.kind.status,
        content_type=CONTENT_TYPE,
        body=json.dumps(problem_members(problem, instance), separators=(",", ":")),
        headers=problem.headers,
    )


def answer_errors(
    app: APIGatewayHttpResolver,
    telemetry: Telemetry,
    not_found: Callable[[], ProblemError],
) -> None:
    """Have every error of a route answered by a problem; `not_found` is the reason why no route
    fits."""

    def answer(error: Exception) -> Response[str]:
        problem = problem_of(error)
        _report(telemetry, problem.kind, error)
        return problem_response(problem, app.current_event.path)

    def answer_no_route(_: Exception) -> Response[str]:
        return problem_response(not_found(), app.current_event.path)

    app.exception_handler(Exception)(answer)
    app.not_found(answer_no_route)


def _report(telemetry: Telemetry, kind: Kind, error: Exception) -> None:
    if kind is Kind.INTERNAL:
        telemetry.failure(Action.REQUEST_FAILED, error)
    elif kind is Kind.UNAVAILABLE:
        telemetry.record(Action.REQUEST_UNAVAILABLE, logging.WARNING, error=str(error))
