"""The history: what runs a job, or an owner, has had."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

from carillon.domain.chunks.chunk import Chunk, Outcome, run_under, success_of
from carillon.domain.chunks.looking import Look, places_of
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Attention, Run, RunKey, RunKind
from carillon.stores.ports import ChunkStore, DeadLetterFilter, Page, RunStore

_MOST_LOOKS = 50
"""Occurrences without a row that are looked for in chunks: rows come within minutes."""

PARALLEL_JOBS = 16
"""Jobs whose newest runs are read side by side."""


class History:
    """The one reader of lists of runs; raises StoreUnavailableError.

    Everybody else reads single rows at most, by their keys, to claim, finish or settle them.
    """

    def __init__(self, runs: RunStore, chunks: ChunkStore | None = None) -> None:
        """Without `chunks` nothing has gone in any."""
        self._runs = runs
        self._chunks = chunks

    def get(self, key: RunKey) -> Run | None:
        """The run's row as it is now; one past its `expires_at` may still be answered."""
        return self._runs.get(key)

    def outcome(self, job: Job, key: RunKey) -> Run | None:
        """The run as it is now: by its row, or by a chunk that has yet to write it."""
        row = self._runs.get(key)
        return self._by_chunk(job, key) if row is None else row

    def outcomes(self, job: Job, fire_times: Sequence[datetime], rows: Iterable[Run]) -> list[Run]:
        """The outcomes, by chunks, of the newest of these occurrences that have no row: `rows` are
        those that there are, which are not read again."""
        have = {row.key.fire_at for row in rows}
        missing = sorted({at for at in fire_times if at not in have}, reverse=True)
        keys = (
            RunKey(job.owner, job.job_id, RunKind.SCHEDULED, at) for at in missing[:_MOST_LOOKS]
        )
        found = (self._by_chunk(job, key) for key in keys)
        return [run for run in found if run is not None]

    def _by_chunk(self, job: Job, key: RunKey) -> Run | None:
        if self._chunks is None or key.kind is not RunKind.SCHEDULED or key.redrive:
            return None
        for look in places_of(job, key.fire_at):
            chunk = chunk_by(self._chunks, look)
            found = None if chunk is None else _in_chunk(chunk, look, key)
            if found is not None:
                return found
        return None

    def whole(self, run: Run) -> Run:
        """The run with its whole result, where that is kept beside its row."""
        text = None if run.result_bytes is None else self._runs.get_result(run)
        return run if text is None else replace(run, result=text)

    def page(
        self,
        owner: str,
        job_id: str,
        limit: int,
        cursor: str | None = None,
        *,
        from_at: datetime | None = None,
        until_at: datetime | None = None,
        consistent: bool = False,
    ) -> Page[Run]:
        """The job's runs, newest fire time first; may be behind unless it is to be `consistent`.

        `from_at` and `until_at` bound their fire times, inclusive, in whole seconds.
        """
        return self._runs.list(
            owner,
            job_id,
            limit,
            cursor,
            from_at=from_at,
            until_at=until_at,
            consistent=consistent,
        )

    def latest(self, owner: str, job_id: str, count: int = 1) -> tuple[Run, ...]:
        """At most `count` of the job's runs, newest fire time first; may be a little behind."""
        return self._runs.newest(owner, job_id, count)

    def latest_of(
        self, owner: str, job_ids: Iterable[str], count: int = 1
    ) -> dict[str, tuple[Run, ...]]:
        """The `latest` of several jobs by job id, read side by side."""
        with ThreadPoolExecutor(PARALLEL_JOBS) as pool:
            return dict(pool.map(lambda one: (one, self.latest(owner, one, count)), job_ids))

    def count(self, owner: str, attention: Attention, most: int) -> int:
        """The number of the owner's runs that need this attention, up to about `most`."""
        return self._runs.count(owner, attention, most)

    def dead_letters(
        self,
        owner: str,
        limit: int,
        cursor: str | None = None,
        only: DeadLetterFilter | None = None,
    ) -> Page[Run]:
        """The owner's dead letters, newest fire time first; eventually consistent."""
        return self._runs.dead_letters(owner, limit, cursor, only)


def chunk_by(chunks: ChunkStore, look: Look) -> Chunk | None:
    """The chunk that has the occurrence, by two strong reads; None where none has it, or yet."""
    key = look.key_by(chunks.get_plan(look.segment, look.minute))
    chunk = None if key is None else chunks.get(key)
    return chunk if chunk is not None and look.ref in chunk.refs else None


def _in_chunk(chunk: Chunk, look: Look, key: RunKey) -> Run | None:
    """The run as its chunk has it; None where it goes on by itself."""
    message = Message(key, look.generation_id, look.segment, chunk.key.lane, chunk.key.due_at)
    if chunk.ends is None:
        return run_under(chunk, message)
    end = chunk.ends[look.ref]
    return success_of(chunk, message, end) if end.outcome is Outcome.OK else None
