"""The trace of a simulation in short words: one line for each call, fault and answer."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from carillon.audit.evidence import Violation
from carillon.domain.chunks.chunk import Chunk
from carillon.domain.chunks.message import ChunkMessage
from carillon.domain.chunks.placing import Plan
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.operation import Operation
from carillon.domain.run import Run, RunKey
from carillon.domain.wheel.entry import Entry, Slot
from carillon.domain.wheel.segment import Control
from carillon.executor.targets import Call
from carillon.simulation.loop import Loop, Task
from carillon.stores.ports import Page
from tests.simulation.worlds.scenario import Scenario

_LONGEST = 160
_MOST_ITEMS = 5
_MOST_LINES = 120
_CALL = re.compile(r"[a-z]+\.[a-z_]+\(.*\) -> ", re.DOTALL)
_FIRE_TIME = re.compile(r"_(\d{8}T\d{6}Z)_")
_WRITTEN = re.compile(r"jobs\.(create|replace)|wheel\.put_entries")
_TICKING = re.compile(r"wheel\.(put_control|query)|queue\.send")
_NEAR_SECONDS = 240
_HAPPENING = re.compile(r"FAULT|dies|goes on after|answered|no answer")


class Tracer:
    """Writes lines to `write`; job ids are shown as the jobs' names."""

    def __init__(self, loop: Loop, scenario: Scenario, write: Callable[[str], None]) -> None:
        self._loop = loop
        self._names = {job.job_id: job.name for job in scenario.plans}
        self._write = write
        loop.trace = self._told
        loop.observers.append(self._called)

    def _told(self, line: str) -> None:
        _, _, text = line.partition(": ")
        # The observer tells of calls, in fewer words.
        if not _CALL.match(text):
            self._write(_named(line, self._names))

    def _called(
        self, task: Task | None, port: str, method: str, args: tuple[Any, ...], answer: object
    ) -> None:
        who = "" if task is None else task.name
        said = ", ".join(map(describe, args))
        line = f"{port}.{method}({said}) -> {describe(answer)}"
        at = f"{self._loop.instant():%Y-%m-%d %H:%M:%S.%f}"
        self._write(_named(f"{at} {who}: {line}", self._names))


def describe(value: object) -> str:
    """A value of ours in as few words as tell it from others."""
    match value:
        case Run():
            lease = "" if value.lease_until is None else f" lease {_time(value.lease_until)}"
            reason = f" ({value.reason})" if value.reason else ""
            claim = f"token {value.token}{lease}"
            return f"{value.key.run_id} {value.status}{reason} attempt {value.attempt} {claim}"
        case RunKey():
            return value.run_id
        case Message():
            waits = "" if value.wait_until is None else f" waits until {_time(value.wait_until)}"
            missed = " for those missed" if value.missed is not None else ""
            return f"{value.key.run_id}/{value.attempt} due {_time(value.due_at)}{waits}{missed}"
        case ChunkMessage():
            members = " ".join(each.job_id for each in value.members)
            return f"chunk {value.key.name} of {members}"
        case Chunk():
            ends = [] if value.ends is None else [end.outcome.value for end in value.ends.values()]
            lease = _time(value.lease_until)
            return f"chunk {value.key.name} claim {value.claim_id[-5:]} lease {lease} ends {ends}"
        case Plan():
            counts = {f"{second}{lane.value}": n for (second, lane), n in value.chunks.items()}
            return f"plan of segment {value.segment} minute {value.minute}: {counts}"
        case Job():
            since = _time(value.generation.from_at)
            generation = f"generation {value.generation.generation_id[-5:]} from {since}"
            return f"{value.job_id} r{value.revision} {value.state} {generation}"
        case Control():
            return _control(value)
        case Entry():
            return f"{value.key} in {describe(value.slot)}"
        case Slot():
            return f"{value.kind.value} {value.number}"
        case Page():
            return describe(value.items)
        case Operation():
            return f"{value.kind} r{value.revision} {value.state} step {value.step} {value.note}"
        case Call():
            return f"{value.run_id}/{value.attempt}"
        case datetime():
            return _time(value)
        case Enum():
            return str(value.value)
        case str():
            return value
        case list() | tuple():
            return _several(value)
        case Iterator():  # its own words are its address, which no replay repeats
            return f"<{type(value).__name__}>"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def told_of(violation: Violation, scenario: Scenario, lines: Sequence[str]) -> list[str]:
    """Of a trace, what concerns a violation: faults, its job's row, and of its fire time, where it
    names one, the run, and the ticks about then."""
    names = {job.job_id: job.name for job in scenario.plans}
    name, fire_at = names.get(violation.job_id, ""), _fire_time_of(violation)
    fire_time = "" if fire_at is None else f"{fire_at:%Y%m%dT%H%M%SZ}"

    def concerns(line: str) -> bool:
        if _HAPPENING.search(line) or (name in line and _WRITTEN.search(line)):
            return True
        if fire_at is None:
            return name in line
        if fire_time in line:
            return True
        ahead = (fire_at - datetime.fromisoformat(f"{line[:26]}+00:00")).total_seconds()
        is_near = -_NEAR_SECONDS < ahead < 2 * _NEAR_SECONDS
        is_said = is_near and violation.fire_at is not None and not line.endswith("-> []")
        return is_said and bool(_TICKING.search(line))

    found = [line for line in lines if concerns(line)]
    if len(found) <= _MOST_LINES:
        return found
    half = _MOST_LINES // 2
    left_out = f"... {len(found) - 2 * half} lines more ..."
    return [*found[:half], left_out, *found[-half:]]


def _fire_time_of(violation: Violation) -> datetime | None:
    """The one that it names, or that of the run that its text names first."""
    found = _FIRE_TIME.search(violation.text)
    if violation.fire_at is not None or found is None:
        return violation.fire_at
    return datetime.strptime(f"{found[1]}+0000", "%Y%m%dT%H%M%SZ%z")


def _control(control: Control) -> str:
    lease = "free"
    if control.lease_until is not None:
        lease = f"{control.lease_owner[-5:]} until {_time(control.lease_until)}"
    backlog = [(each.announced, each.done, each.until) for each in control.backlog]
    return (
        f"segment {control.segment} horizon {control.horizon} watermark {control.watermark} "
        f"token {control.token} {lease} backlog {backlog}"
    )


def _several(values: Sequence[object]) -> str:
    shown = "; ".join(map(describe, values[:_MOST_ITEMS]))
    more = f"; {len(values) - _MOST_ITEMS} more" if len(values) > _MOST_ITEMS else ""
    return f"[{shown}{more}]"


def _time(instant: datetime) -> str:
    text = f"{instant:%d %H:%M:%S.%f}"
    return text.removesuffix(".000000")


def _named(line: str, names: Mapping[str, str]) -> str:
    for job_id, name in names.items():
        line = line.replace(job_id, name)
    return line
