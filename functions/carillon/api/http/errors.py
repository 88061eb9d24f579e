"""Why the API refuses a request, apart from how HTTP says so.

CarillonError
├── InvalidFieldError          (shared) one field is wrong
├── InvalidFieldsError         several fields may be wrong
├── PayloadTooLargeError       the payload, or the whole body, is over its limit
├── MissingError               no such thing of this owner's
├── KeyReusedError             an idempotency key came with another request
├── KeyGoneError               the job of an idempotency key was deleted, or has completed
├── RevisionMismatchError      the job or calendar is not at the revision that was expected
├── AlreadyThereError          something of that name is there, and must not be
├── CalendarInUseError         a calendar that jobs follow cannot be deleted
├── NotCancellableError        a run that is running, or has ended
├── NotADeadLetterError        a run that cannot be redriven or discarded
├── JobGoneError               a dead letter whose job was deleted cannot be redriven
├── OperationEndedError        an operation that has ended cannot be cancelled
└── ContendedError             others kept changing the job or calendar
"""

from collections.abc import Callable, Sequence

from carillon.errors import CarillonError, InvalidFieldError


class InvalidFieldsError(CarillonError):
    """`errors` are pairs of a field's path in the request and what is wrong with it."""

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
    """The owner has no `kind` (job, run, calendar) of that id; others may, and must not be told
    of."""

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"you have no {kind} {identifier[:200]!r}")


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
    """`status` is the run's: only one that waits, for its start or a retry, can be cancelled."""

    def __init__(self, run_id: str, status: str) -> None:
        super().__init__(f"run {run_id} is {status}: it can be cancelled only while it waits")


class NotADeadLetterError(CarillonError):
    """`why` says what the run is instead."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"run {run_id} cannot be settled: {why}")


class JobGoneError(CarillonError):
    def __init__(self, run_id: str, job_id: str) -> None:
        super().__init__(f"run {run_id} cannot be redriven: job {job_id} was deleted")


class OperationEndedError(CarillonError):
    def __init__(self, operation_id: str, state: str) -> None:
        super().__init__(f"operation {operation_id} has {state} and cannot be cancelled")
