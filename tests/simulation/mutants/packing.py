"""Bugs planted in packed history: what lists show, and what looks at chunks before it runs."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import carillon.services.packed as packed
import carillon.stores.recording as recording
from carillon.domain.chunks.chunk import Chunk, Outcome
from carillon.domain.chunks.history import GenerationRecord
from carillon.domain.chunks.looking import Look, looks_of
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKey
from carillon.executor.chunks.looks import ChunkLooks
from carillon.services.packed import PackedRuns
from carillon.stores.ports import Page
from tests.simulation.mutants.kit import (
    LANES,
    Code,
    Mutant,
    Swap,
    asked,
    both,
    given,
    instead,
)
from tests.simulation.worlds.scenario import Scenario


def _own_generation_alone(original: Code) -> Code:
    def records_of(
        job: Job | None, stored: Iterable[GenerationRecord], now: datetime, lifetime: timedelta
    ) -> list[GenerationRecord]:
        found: list[GenerationRecord] = original(job, (), now, lifetime)
        return found

    return records_of


def _died_is_a_success(original: Code) -> Code:
    def in_chunk(chunk: Chunk, look: Look, key: RunKey) -> Run | None:
        end = None if chunk.ends is None else chunk.ends.get(look.ref)
        if end is not None and end.outcome is Outcome.DIED:
            chunk = replace(chunk, ends={look.ref: replace(end, outcome=Outcome.OK)})
        run: Run | None = original(chunk, look, key)
        return run

    return in_chunk


def _rows_alone(original: Code) -> Code:
    def merged(self: PackedRuns, rows: Page[Run], *args: Any, **how: Any) -> Page[Run]:
        return rows

    return merged


def _cursor_of_the_rows(original: Code) -> Code:
    """The page continues where the rows do, though it has left out later ones of its own."""

    def page(
        scope: tuple[str, str],
        by_key: Any,
        unreadable: Any,
        limit: int,
        stop: str | None,
        next_cursor: str | None,
    ) -> Page[Run]:
        made: Page[Run] = original(scope, by_key, unreadable, limit, stop, next_cursor)
        return replace(made, next_cursor=next_cursor)

    return page


def _looks_by_generation_alone(original: Code) -> Code:
    def looks(
        self: ChunkLooks, job: Job, message: Message, over: Run | None, now: datetime
    ) -> Iterable[Look]:
        return looks_of(job, message)

    return looks


def _packed(scenario: Scenario) -> Scenario:
    """The seed's own world, with chunks from the start."""
    options = replace(scenario.options, chunks=True, records=True, owner_starts_per_minute=0)
    return replace(scenario, options=options, switched_at=None, minutes=max(scenario.minutes, 20))


_UNTOLD = ("history",)

PACKING: tuple[Mutant, ...] = (
    Mutant(
        "change_leaves_no_record",
        _UNTOLD,
        "a change of a job is committed without the record of the generation before",
        (Swap(recording, "left_by", instead(lambda before, after, lifetime: None)),),
        reshape=_packed,
    ),
    Mutant(
        "old_generations_not_read",
        _UNTOLD,
        "lists look for the runs of the generation that counts, and of no other",
        (Swap(packed, "records_of", _own_generation_alone),),
        reshape=_packed,
    ),
    Mutant(
        "died_shown_as_success",
        _UNTOLD,
        "what a disbanded chunk lists as died is shown as a success",
        (Swap(packed, "_in_chunk", _died_is_a_success),),
        reshape=_packed,
        cannot_break="at the end of a world what died has a final row, which counts more",
    ),
    Mutant(
        "history_of_rows_alone",
        _UNTOLD,
        "lists show rows, and no run that only a chunk tells of",
        (Swap(PackedRuns, "merged", _rows_alone),),
        reshape=_packed,
    ),
    Mutant(
        "cursor_passes_packed_runs",
        _UNTOLD,
        "a page that is full of packed runs continues behind the last row",
        (Swap(packed, "_page", _cursor_of_the_rows),),
        reshape=_packed,
    ),
    Mutant(
        "late_message_does_not_look",
        ("I2", "history", "I4"),
        "a late message of what has succeeded in a chunk does not look there",
        (Swap(ChunkLooks, "_looks", _looks_by_generation_alone),),
        reshape=both(_packed, asked("change", 1, *LANES), given(most_latency_us=900_000)),
    ),
)
