"""A change: who did what to a job, and what was different then."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import ValidatorFunctionWrapHandler, WrapValidator

from carillon.domain.spec.owners import Author

VALUE_BYTES = 256
"""Of a value as compact JSON; a longer one is cut, and is a text then."""
CHANGED_BYTES = 2_048
"""Of all values of a change: it stands in the row that every run reads."""
MOST_PATHS = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_MICROSECONDS, _MOST_REVISIONS = 10**16 - 1, 10**9 - 1
_ELLIPSIS = "…"
_HIDDEN = frozenset({"payload", "headers", "environment", "parameters"})
"""Members whose values may be anybody's secrets: a digest says whether they differ."""
_REFERENCES = ({"secret"}, {"parameter"})
"""The members of a reference, which names a secret and does not tell it."""


class Subject(StrEnum):
    """The kind of what was changed."""

    JOB = "job"
    CALENDAR = "calendar"
    NOTIFICATION = "notification"
    QUOTA = "quota"
    OPERATION = "operation"
    """On dead letters of several jobs."""


class Action(StrEnum):
    """The closed list of what can be done."""

    CREATE = "create"
    CHANGE = "change"
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"
    COMPLETE = "complete"
    """Its last run has ended, and it was to be deleted then."""
    RENAME = "rename"
    MOVE = "move"
    """To another segment, by an operator's command."""
    HAND_OVER = "hand_over"
    """To another owner, or from one."""
    RUN = "run"
    """By hand."""
    CANCEL = "cancel"
    BACKFILL = "backfill"
    REDRIVE = "redrive"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class Difference:
    """A member that differs; `before` and `after` are JSON texts, `null` where there is none."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Change:
    """One mutation. `key` is the job's id, or another subject's name, `name` what it was called
    then, `revision` the one that this made, `source` the manifest or stack that applies the
    settings, "" without. What was done to runs leaves its subject's revision as it is: `ref` is the
    id of the run, or of the operation, "" else."""

    owner: str
    subject: Subject
    key: str
    name: str
    action: Action
    revision: int
    at: datetime
    author: Author
    changed: tuple[Difference, ...] = ()
    note: str = ""
    source: str = ""
    ref: str = ""

    @property
    def members(self) -> list[dict[str, Any]]:
        """The members that differ, as JSON."""
        return [
            {
                "path": each.path,
                "before": json.loads(each.before),
                "after": json.loads(each.after),
            }
            for each in self.changed
        ]

    @property
    def position(self) -> str:
        """Its place among the changes of its subject: newest first, then by revision.
        Requests of one instant differ by what they are and ask for."""
        place = f"{newest_first(self.at)}.{_MOST_REVISIONS - self.revision:09}"
        return f"{place}.{self.action}.{self.ref}" if self.ref else place

    @property
    def change_id(self) -> str:
        """Its name, and its place among the changes of its owner."""
        return f"{self.position}.{self.subject}.{self.key}"


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Change | None:
    try:
        found: Change | None = read(value)
    except ValueError:
        return None
    return found


KeptChange = Annotated[Change | None, WrapValidator(_or_none)]
"""A change in a row that is read for other ends: None where this version cannot read it."""


def newest_first(at: datetime) -> str:
    """A text by which later instants come first."""
    return f"{_MOST_MICROSECONDS - (at - _EPOCH) // _MICROSECOND:016}"


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two documents differ: path, value before, value after. Objects are compared member by
    member; what one of them has not is null."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            inner = f"{path}.{name}" if path else name
            yield from differences(before.get(name), after.get(name), inner)
    elif json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True):
        yield path, before, after  # in JSON 1 is neither true nor 1.0


def changed_members(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The members that differ between two documents, as they may be kept: no value that may be a
    secret, none that is long, and no more of them than fit."""
    masked = dict(_masked(dict(before))), dict(_masked(dict(after)))
    found: list[Difference] = []
    left_bytes = CHANGED_BYTES
    for path, old, new in differences(*masked):
        texts = _cut(old), _cut(new)
        left_bytes -= sum(len(text.encode()) for text in texts)
        if left_bytes < 0:
            texts = (json.dumps(_ELLIPSIS),) * 2
        found.append(Difference(path, *texts))
    return tuple(found[:MOST_PATHS])


def _masked(value: Any, name: str = "") -> Any:
    """The value without what may be a secret. Each header keeps its name."""
    if name == "headers" and isinstance(value, dict):
        return {
            each: held if _is_reference(held) else _masked(held, "payload")
            for each, held in value.items()
        }
    # First: a payload may look like a reference, and then has the secret itself in it.
    if name in _HIDDEN:
        return None if value is None else _digest(value)
    if _is_reference(value):
        return value
    if isinstance(value, dict):
        return {each: _masked(held, each) for each, held in value.items()}
    if isinstance(value, list):
        return [_masked(each) for each in value]
    if name == "url" and isinstance(value, str) and "?" in value:
        return f"{value.partition('?')[0]}?{_digest(value)}"
    return value


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() in _REFERENCES


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _cut(value: Any) -> str:
    """The value as compact JSON; the beginning of that, as a text, where it is too long."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    data = text.encode("utf-8", "replace")
    if len(data) <= VALUE_BYTES:
        return data.decode()
    # A quoted text may take twice as much: half of the bytes fit in any case.
    kept = data[: VALUE_BYTES // 2 - len(_ELLIPSIS.encode())].decode("utf-8", "ignore")
    return json.dumps(kept + _ELLIPSIS, ensure_ascii=False)
