"""Every error that Carillon raises on purpose.

CarillonError
├── InvalidFieldError        what a caller sent is wrong: names the field and what would be right
├── ConfigurationError       a setting of the deployment is wrong: names the variable
├── MalformedMessageError    a queue message that no version of Carillon wrote
├── TaskRegistrationError    a function cannot be a task (shared/carillon/tasks.py)
├── UnknownTaskError         no task has this name (shared/carillon/tasks.py)
├── ApiError                 an answer of the API that is no success (shared/carillon/client)
├── InvalidSignature         a webhook that is not Carillon's (shared/carillon/client)
├── HeldError                another executor holds the run: its message stays with the queue
├── RunAloneError            an executor died on the run: its message is to be handled alone
├── StoreUnavailableError    the store throttled or failed beyond the retries
│   └── UnreadableRowError   a row that cannot be read, or a key that the store never takes
└── QueueUnavailableError    the queue did not take some messages beyond the retries

A lost condition is not an error: stores answer it with False.
"""

from typing import Any


class CarillonError(Exception):
    """The root of the tree. Each can be pickled: a pool of processes hands errors on so."""

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), self.args, vars(self))


def restored(kind: type[Exception], args: tuple[object, ...], members: dict[str, Any]) -> Exception:
    """An error as it was, without its constructor: that takes other arguments than `args`."""
    error = kind.__new__(kind, *args)
    vars(error).update(members)
    return error


class InvalidFieldError(CarillonError):
    """A value of a request cannot be used.

    `field` is the path in the request's JSON (`schedule.every`), `message` has the fault and the
    remedy.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class ConfigurationError(CarillonError):
    """A setting is missing or wrong; `name` is the environment variable or context key."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


class MalformedMessageError(CarillonError):
    """The body of a queue message cannot be read."""


class HeldError(CarillonError):
    """Another executor holds what a message asks for. The message stays with the queue, which
    delivers it again after its visibility timeout."""


class StoreUnavailableError(CarillonError):
    """The store did not take or answer a request; nothing is known about a write's effect."""


class UnreadableRowError(StoreUnavailableError):
    """A stored row cannot be read, such as one that a later version wrote before a rollback; or
    the store refuses a request for good, such as a key that is too long. Only the row, or another
    version, can mend it: time does not."""


class RunAloneError(CarillonError):
    """An executor died on what the message orders: it is to be handled when nothing runs beside it,
    which it could take along."""


class QueueUnavailableError(CarillonError):
    """`unsent` messages were not acknowledged by the queue; the others were."""

    def __init__(self, unsent: int, reason: str) -> None:
        super().__init__(f"{unsent} messages not acknowledged by the queue: {reason}")
        self.unsent = unsent


def reason_of(error: Exception) -> str:
    """The text to log for an error that stays with its item: kind and message."""
    try:
        return f"{type(error).__name__}: {error}"[:1000]
    except Exception:  # a text of its own that fails
        return type(error).__name__


_SHOWN_CHARACTERS = 60


def quoted(text: str) -> str:
    """The text in double quotes, cut where it is long, control characters made visible."""
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown) + '"'
