"""The jobs that a CloudFormation stack declares: applied as its deployment goes on."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carillon.api.apply.models import MOST_ITEMS, ApplyBody
from carillon.api.apply.plan import Applied, Item, ItemAction
from carillon.api.apply.service import ApplyService, Tell
from carillon.clock import Clock
from carillon.domain.spec.owners import Author
from carillon.domain.spec.together import groups_of

PAUSE_SECONDS = 1.0
MOST_REASON_BYTES = 3_000
"""A whole answer to CloudFormation has 4,096."""
_HINDERING = (ItemAction.REFUSED, ItemAction.DRIFT)


class StackRefusedError(Exception):
    """The jobs cannot be applied; the message names each one's field, as far as there is room."""


@dataclass(frozen=True, slots=True)
class StackJobs:
    """`document` has jobs and calendars by name, as a manifest. They are the stack's own: what
    others have changed is overwritten, what others manage is refused."""

    owner: str
    manager: str
    author: Author
    document: Mapping[str, Mapping[str, Any]]


class StackService:
    """Applies all jobs of a stack, however many, before `ends_at`, and prunes the others that it
    manages."""

    def __init__(self, service: ApplyService, clock: Clock, ends_at: datetime, tell: Tell) -> None:
        self._service = service
        self._clock = clock
        self._ends_at = ends_at
        self._tell = tell

    def apply(self, stack: StackJobs) -> None:
        """Nothing is written if any job is refused. Raises StackRefusedError."""
        jobs = stack.document.get("jobs", {})
        parts = list(parts_of(jobs)) or [{}]
        calendars = dict(stack.document.get("calendars", {}))
        # One part is planned as a whole before it is written; of several the last may be refused.
        for dry_run in (True, False) if len(parts) > 1 else (False,):
            for part in parts:
                body = ApplyBody(
                    manifest="stack", jobs=part, calendars=calendars, dry_run=dry_run, force=True
                )
                self._complete(stack, body)
        self.prune(stack, list(jobs))

    def prune(self, stack: StackJobs, keep: list[str]) -> None:
        """Delete what the stack manages but for `keep`. Raises StackRefusedError."""
        self._complete(stack, ApplyBody(manifest="stack", keep=keep))

    def _complete(self, stack: StackJobs, body: ApplyBody) -> None:
        while True:
            applied = self._service.apply(
                stack.owner, stack.author, stack.manager, body, self._tell
            )
            if any(item.action in _HINDERING for item in applied.items):
                raise StackRefusedError(reason_of(applied))
            if applied.is_complete:
                return
            if self._clock.now() >= self._ends_at:
                raise StackRefusedError(f"not applied in time: {reason_of(applied)}")
            self._clock.sleep(PAUSE_SECONDS)


def parts_of(jobs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each with at most so many jobs as one call takes, and whole groups of those that belong
    together."""
    part: dict[str, Any] = {}
    for group in groups_of(jobs):
        if part and len(part) + len(group) > MOST_ITEMS:
            yield part
            part = {}
        part.update(group)
    if part:
        yield part


def reason_of(applied: Applied) -> str:
    """All that hinders, an item a line; of more than there is room for, their number."""
    lines = [_line(item) for item in applied.items if item.problem is not None]
    told, size_bytes = list[str](), 0
    for line in lines:
        size_bytes += len(json.dumps(line))
        if size_bytes > MOST_REASON_BYTES:
            told.append(f"and {len(lines) - len(told)} more")
            break
        told.append(line)
    return "; ".join(told)


def _line(item: Item) -> str:
    problem = item.problem
    assert problem is not None
    faults = ", ".join(f"{field}: {message}" for field, message in problem.errors)
    return f"{item.kind} {item.name!r}: {faults or problem.detail}"[:500]


def with_values(document: Any, values: Mapping[str, str]) -> Any:
    """The document with what was known at deployment only: `{"$ref": "t1"}` is the value t1, as
    `{"$ref": "n1"}` is n1, a number, and `{"$ref": {"$ref": ...}}` a member `$ref` of the job's
    own."""
    if isinstance(document, dict):
        if document.keys() == {"$ref"}:
            said = document["$ref"]
            if isinstance(said, str):
                return json.loads(values[said]) if said.startswith("n") else values[said]
            document = said
        return {name: with_values(value, values) for name, value in document.items()}
    if isinstance(document, list):
        return [with_values(value, values) for value in document]
    return document
