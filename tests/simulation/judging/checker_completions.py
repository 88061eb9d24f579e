"""Runs that end by a report: what was answered is so, silence ends them, and while they are open
they hold their permits."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from carillon.audit.evidence import Violation
from carillon.domain.run import TIMEOUT_KIND, Run, RunStatus
from tests.simulation.judging.checker_calls import recovery
from tests.simulation.judging.evidence import Ack, RunWrite
from tests.simulation.judging.known import Known

_NAME = "completion"
_PUNCTUAL = timedelta(seconds=3)
"""After the end of a lease whole seconds of a check, and its handling."""


def reported(known: Known) -> Iterator[Violation]:
    """What was answered is so: a run that was reported complete has succeeded with that result, and
    a failure that was reported is on record. So of one attempt there is one outcome."""
    for ack in known.evidence.acks:
        text = _otherwise(known, ack)
        if text:
            yield Violation(_NAME, ack.job_id, f"{ack.run_id}: {ack.what} {ack.word}, {text}")


def _otherwise(known: Known, ack: Ack) -> str | None:
    if ack.what not in ("complete", "fail", "heartbeat"):
        return None
    row = known.by_run_id.get(ack.run_id)
    if row is None:
        return "answered, and there is no such run"
    if ack.what == "complete":
        is_own = ack.word.startswith(f"{row.attempt}/")
        is_so = row.status is RunStatus.SUCCEEDED and row.result == ack.word and is_own
        return None if is_so else f"answered at {ack.answered_at}: it is {_said(row)}"
    errors = [record.error.message for record in row.attempts]
    if row.error is not None:
        errors.append(row.error.message)
    if ack.what == "fail" and ack.word not in errors:
        return f"answered at {ack.answered_at}, is not among {errors}"
    return None


def _said(row: Run) -> str:
    return f"{row.status.value} at attempt {row.attempt}, with {row.result!r}"


def lapsing(known: Known) -> Iterator[Violation]:
    """No attempt ends for silence before its lease has, and where nothing is broken it ends soon
    after: as any other run that is due then would start."""
    terms = known.evidence.circumstances
    for key, writes in known.writes.items():
        for write in writes:
            before, after = write.before, write.after
            if before is None or not before.is_open or before.lease_until is None:
                continue
            late = write.at - before.lease_until
            if _is_lapse(before, after) and late < timedelta():
                text = f"{key.run_id} ended for silence at {write.at}, {-late} early"
                yield Violation(_NAME, key.job_id, text, key.fire_at)
            is_calm = known.is_calm(before.lease_until - recovery(terms), write.at)
            calls = timedelta(seconds=20 * terms.latency_seconds)
            if late > _PUNCTUAL + calls and is_calm:
                text = f"{key.run_id} was left open for {late} after its lease, until {write.at}"
                yield Violation(_NAME, key.job_id, text, key.fire_at)


def _is_lapse(before: Run, after: Run | None) -> bool:
    if after is None or after.status is RunStatus.RUNNING:
        return False
    return after.error is not None and after.error.kind == TIMEOUT_KIND


def crowded(known: Known) -> Iterator[Violation]:
    """Runs that are open under their lease, and calls under way, hold a key's permits: no call
    begins beyond its limit. Of processes that nothing struck, and keys that no job has changed."""
    limits: dict[tuple[str, str], int] = {}
    begun: defaultdict[tuple[str, str], list[tuple[datetime, str]]] = defaultdict(list)
    for each in known.evidence.deliveries:
        versions = known.evidence.versions.get(each.job_id, ())
        places = {version.job.spec.concurrency for version in versions}
        place = places.pop() if len(places) == 1 else None
        if place is not None and each.is_untouched and "_callback" not in each.run_id:
            name = (versions[0].job.owner, place.key)
            limits[name] = max(limits.get(name, 0), place.limit)
            begun[name].append((each.begun_at, each.run_id))
    spans = _open_spans(known)
    for name, starts in begun.items():
        for at, run_id in starts:
            held = [
                other
                for other, opened_at, until in spans.get(name, ())
                if opened_at < at < until and other != run_id
            ]
            if len(held) >= limits[name]:
                text = f"{run_id} began at {at}, while {', '.join(held)} held {name[1]!r}"
                yield Violation(_NAME, run_id.split("_")[0], text)


def _open_spans(known: Known) -> dict[tuple[str, str], list[tuple[str, datetime, datetime]]]:
    """By owner and key: runs, and the spans in which they were open under a lease."""
    spans: defaultdict[tuple[str, str], list[tuple[str, datetime, datetime]]] = defaultdict(list)
    for key, writes in known.writes.items():
        for write, ended in zip(writes, [*writes[1:], None], strict=True):
            row = write.after
            if row is None or not row.is_open or row.completion is None or not row.lease_until:
                continue
            until = min(row.lease_until, _ended_at(ended, row.lease_until))
            for name in row.completion.permits:
                if name.startswith("key/"):
                    place = (key.owner, name.removeprefix("key/"))
                    spans[place].append((key.run_id, write.at, until))
    return spans


def _ended_at(ended: RunWrite | None, otherwise: datetime) -> datetime:
    return otherwise if ended is None else ended.at
