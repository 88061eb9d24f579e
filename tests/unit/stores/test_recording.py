"""RecordedJobs: no write of a job without its change, wherever a process dies."""

import ast
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from carillon.api.changes.service import ChangeService
from carillon.domain.changes.change import Action, Change, Subject
from carillon.domain.chunks.history import GenerationRecord
from carillon.domain.job import Generation, Job, Slow
from carillon.domain.policies import Overlap
from carillon.domain.spec.owners import Author, AuthorKind, Via
from carillon.stores.memory import MemoryChangeStore, MemoryJobStore, NoEvents
from carillon.stores.memory.chunks import MemoryChunkStore
from carillon.stores.ports import ChangeFilter
from carillon.stores.recording import ChangeEvents, GenerationRecords, RecordedJobs
from tests.contract.samples import a_job
from tests.support.jobs import job_with
from tests.unit.test_layout import CODE, name_of

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LIFETIME = timedelta(days=30)
NO_EVENTS = ChangeEvents(NoEvents())
NO_RECORDS = GenerationRecords(MemoryChunkStore(), LIFETIME)
ANN = Author(AuthorKind.PERSON, "sub-1", "ann", Via.API)
JOB = a_job("user/owner-1", author=ANN, updated_at=NOW)
PAUSED = JOB.paused(NOW + timedelta(seconds=1), "why", ANN)
EVERYTHING = ChangeFilter()


class Killed(Exception):
    pass


class DyingChanges(MemoryChangeStore):
    """The process dies before this put, counted from 0."""

    dies_at = -1

    def put(self, change: Change) -> None:
        self.dies_at -= 1
        if self.dies_at == -1:
            raise Killed
        super().put(change)


@pytest.fixture
def changes() -> DyingChanges:
    return DyingChanges()


@pytest.fixture
def raw() -> MemoryJobStore:
    return MemoryJobStore()


@pytest.fixture
def jobs(raw: MemoryJobStore, changes: DyingChanges) -> RecordedJobs:
    return RecordedJobs(raw, changes, NO_EVENTS, NO_RECORDS)


def actions(changes: MemoryChangeStore) -> list[str]:
    page = changes.of_subject(JOB.owner, Subject.JOB, JOB.job_id, 100)
    return [f"{change.revision} {change.action}" for change in page.items]


def test_each_revision_has_one_change(jobs: RecordedJobs, changes: DyingChanges) -> None:
    assert jobs.create(JOB)
    assert jobs.create(JOB), "the same again"
    assert not jobs.create(replace(JOB, segment=JOB.segment + 1))
    assert jobs.replace(PAUSED, 1)
    assert jobs.replace(PAUSED, 1), "the same again"
    assert not jobs.replace(JOB.deleted(NOW, NOW), 1)
    marked = replace(PAUSED, slow=Slow(NOW, "slow"))
    assert jobs.replace(marked, 2), "no change of its owner's"

    assert actions(changes) == ["2 pause", "1 create"]
    stored = jobs.get(JOB.owner, JOB.job_id)
    assert stored is not None


def test_the_deployments_own_jobs_are_written_by_ticks(
    jobs: RecordedJobs, changes: DyingChanges
) -> None:
    """They may not write into the table of runs."""
    own = replace(JOB, owner="system/carillon")
    assert jobs.create(own)
    assert jobs.replace(own.paused(NOW), 1)
    assert changes.of_owner(own.owner, 10).items == ()


@pytest.mark.parametrize("is_read", [True, False])
def test_a_death_between_commit_and_row_loses_nothing(
    jobs: RecordedJobs, changes: DyingChanges, is_read: bool
) -> None:
    """The next read has it, and so has the next change."""
    jobs.create(JOB)
    changes.dies_at = 1
    with pytest.raises(Killed):
        jobs.replace(PAUSED, 1)
    stored = jobs.get(JOB.owner, JOB.job_id)
    assert stored == PAUSED, "it was committed"
    assert actions(changes) == ["1 create"]
    if is_read:
        stores: Any = SimpleNamespace(jobs=jobs, changes=changes)
        service = ChangeService(stores)
        page = service.of_job(JOB.owner, JOB.job_id, 10, None, EVERYTHING)
        assert [change.action for change in page.items] == [Action.PAUSE, Action.CREATE]
        assert service.of_owner(JOB.owner, 10, None, EVERYTHING).items == page.items
    else:
        assert jobs.replace(stored.deleted(NOW + timedelta(seconds=2), NOW, ANN), 2)
        assert actions(changes) == ["3 delete", "2 pause", "1 create"]


def test_a_death_before_the_commit_leaves_no_change(
    jobs: RecordedJobs, changes: DyingChanges
) -> None:
    jobs.create(JOB)
    changes.dies_at = 0
    with pytest.raises(Killed):
        jobs.replace(PAUSED, 1)

    assert jobs.get(JOB.owner, JOB.job_id) == JOB
    assert actions(changes) == ["1 create"]


def test_a_change_of_another_life_hides_none(
    jobs: RecordedJobs, raw: MemoryJobStore, changes: DyingChanges
) -> None:
    """A tombstone expires before its changes do: then the name's first revision comes again."""
    jobs.create(JOB)
    again = RecordedJobs(MemoryJobStore(), changes, NO_EVENTS, NO_RECORDS)
    again.create(replace(JOB, updated_at=NOW + timedelta(days=60)))

    assert actions(changes) == ["1 create", "1 create"]


def calls_of(names: set[str], methods: set[str]) -> set[str]:
    """The modules that call one of these methods of something of one of these names."""
    found = set()
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in methods:
                holder = node.value
                name = holder.attr if isinstance(holder, ast.Attribute) else ""
                name = holder.id if isinstance(holder, ast.Name) else name
                if name.strip("_") in names:
                    found.add(name_of(path))
    return found


def test_nothing_else_writes_changes() -> None:
    assert calls_of({"changes"}, {"put"}) == {"carillon.stores.recording"}
    written = calls_of({"calendars", "notifications"}, {"put", "delete"})
    assert written == {"carillon.simulation.run"}, "a rehearsal of calendars that are given"


def test_nothing_else_opens_jobs_that_are_not_recorded() -> None:
    """A store of jobs that records nothing is known to the one that does, and to the simulation."""
    holders = {
        name_of(path)
        for path in CODE
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) and node.id in ("DynamoJobStore", "MemoryJobStore")
    }
    assert holders - {"carillon.stores.memory"} == {
        "carillon.stores.dynamo",
        "carillon.simulation.seams",
    }
    opening = next(path for path in CODE if name_of(path) == "carillon.stores.dynamo")
    assert re.search(r"jobs=RecordedJobs\(\s*DynamoJobStore\(", opening.read_text())


class TestGenerationRecords:
    """What a row leaves that is replaced by one that fires otherwise."""

    @pytest.fixture
    def chunks(self) -> MemoryChunkStore:
        return MemoryChunkStore()

    @pytest.fixture
    def jobs(
        self, raw: MemoryJobStore, changes: DyingChanges, chunks: MemoryChunkStore
    ) -> RecordedJobs:
        return RecordedJobs(raw, changes, NO_EVENTS, GenerationRecords(chunks, LIFETIME))

    @pytest.fixture
    def again(self) -> Job:
        later = NOW + timedelta(hours=3)
        return JOB.in_new_generation(Generation("01KAGZ9ZZZZZZZZZZZZZZZZZZZ", later), later)

    def records(self, chunks: MemoryChunkStore) -> dict[int, GenerationRecord]:
        return dict(chunks.get_records(JOB.owner, JOB.job_id, consistent=True).rows)

    def test_it_is_put_before_the_commit(
        self, jobs: RecordedJobs, raw: MemoryJobStore, chunks: MemoryChunkStore, again: Job
    ) -> None:
        jobs.create(JOB)
        raw.replace = killed  # type: ignore[method-assign,assignment]
        with pytest.raises(Killed):
            jobs.replace(again, 1)
        record = self.records(chunks)[1]
        assert record.generation_id == JOB.generation.generation_id
        assert (record.schedule, record.place) == (JOB.schedule, JOB.place)
        assert (record.from_at, record.until_at) == (JOB.generation.from_at, again.updated_at)
        assert record.expires_at > again.updated_at + LIFETIME

    def test_a_creation_a_pause_and_a_deletion_leave_none(
        self, jobs: RecordedJobs, chunks: MemoryChunkStore
    ) -> None:
        """The row has it all, as long as it stands."""
        jobs.create(JOB)
        assert jobs.replace(PAUSED, 1)
        assert jobs.replace(PAUSED.deleted(NOW, NOW + LIFETIME), 2)
        assert self.records(chunks) == {}

    def test_a_resumption_leaves_what_was_until_the_pause(
        self, jobs: RecordedJobs, chunks: MemoryChunkStore
    ) -> None:
        jobs.create(JOB)
        jobs.replace(PAUSED, 1)
        later = NOW + timedelta(hours=3)
        generation = Generation("01KAGZ9ZZZZZZZZZZZZZZZZZZZ", later)
        assert jobs.replace(PAUSED.in_new_generation(generation, later), 2)
        assert {n: each.until_at for n, each in self.records(chunks).items()} == {
            2: PAUSED.paused_at
        }

    def test_another_segment_of_a_paused_job_leaves_the_one_before(
        self, jobs: RecordedJobs, chunks: MemoryChunkStore
    ) -> None:
        jobs.create(JOB)
        jobs.replace(PAUSED, 1)
        assert jobs.replace(replace(PAUSED, segment=9, revision=3), 2)
        (record,) = self.records(chunks).values()
        assert record.place == JOB.place

    def test_what_never_goes_in_chunks_leaves_none(
        self, jobs: RecordedJobs, chunks: MemoryChunkStore, again: Job
    ) -> None:
        alone = job_with(JOB, overlap=Overlap.SKIP)
        assert alone.place is None
        jobs.create(alone)
        assert jobs.replace(replace(again, spec=alone.spec), 1)
        assert self.records(chunks) == {}


def killed(*args: object) -> bool:
    raise Killed
