"""Pages of the AWS stores where filters leave little: bounded, short, and going on."""

from collections.abc import Callable
from typing import Any

import pytest

from carillon.domain.run import RunError, RunStatus
from carillon.stores.dynamo.table import MOST_REQUESTS, Partitions
from carillon.stores.ports import DeadLetterFilter, JobFilter, Page
from tests.contract.kit import Kit
from tests.contract.samples import FIRE_AT, a_job, a_key, a_run, an_operation, job_id
from tests.contract.test_chunk_reads import a_record
from tests.contract.wire import Wire

ROWS = 3 * MOST_REQUESTS


@pytest.fixture
def small_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB as with rows of 500 KB: two are all that one answer has room for."""
    query = Partitions.query

    def of_two(
        self: Partitions, hash_key: str, after: str | None, limit: Any = None, *more: Any, **kw: Any
    ) -> Any:
        return query(self, hash_key, after, min(limit or 2, 2), *more, **kw)

    monkeypatch.setattr(Partitions, "query", of_two)


def _pages(wire: Wire, ask: Callable[[str | None], Page[Any]]) -> list[Page[Any]]:
    """All pages, none of which took more requests than are allowed."""
    pages = []
    cursor: str | None = None
    while True:
        wire.calls.clear()
        pages.append(ask(cursor))
        assert len(wire.calls) <= MOST_REQUESTS
        cursor = pages[-1].next_cursor
        if cursor is None:
            return pages


@pytest.mark.usefixtures("small_answers")
def test_a_rare_filter_goes_on_over_empty_pages(aws_kit: Kit, wire: Wire) -> None:
    owner = aws_kit.new_owner()
    wanted = [ROWS - 5, ROWS - 1]
    for number in range(ROWS):
        parent = "rare" if number in wanted else ""
        assert aws_kit.jobs.create(a_job(owner, job_id=f"{number:026}", parent=parent))

    pages = _pages(wire, lambda cursor: aws_kit.jobs.list(owner, 5, cursor, JobFilter("rare")))

    assert [int(job.job_id) for page in pages for job in page.items] == wanted
    assert (pages[0].items, len(pages)) == ((), 2)


@pytest.mark.usefixtures("small_answers")
def test_rare_dead_letters_are_found_over_empty_pages(aws_kit: Kit, wire: Wire) -> None:
    owner = aws_kit.new_owner()
    for number in range(ROWS):
        key = a_key(owner, FIRE_AT, job_id=job_id(number))
        error = RunError("rare" if number == 7 else "often", "")
        run = a_run(key, status=RunStatus.DEAD, lease_until=None, error=error)
        assert aws_kit.runs.claim(run, over=None)
    only = DeadLetterFilter(error="rare")

    pages = _pages(wire, lambda cursor: aws_kit.runs.dead_letters(owner, 5, cursor, only))

    assert [run.key.job_id for page in pages for run in page.items] == [job_id(7)]
    assert len(pages) == 2


@pytest.mark.usefixtures("small_answers")
def test_a_page_of_large_rows_is_short_and_loses_none(aws_kit: Kit, wire: Wire) -> None:
    owner = aws_kit.new_owner()
    for number in range(ROWS):
        assert aws_kit.operations.put(an_operation(owner, operation_id=f"{number:026}"), None)

    pages = _pages(wire, lambda cursor: aws_kit.operations.list(owner, ROWS, cursor))

    found = [int(each.operation_id) for page in pages for each in page.items]
    assert found == list(reversed(range(ROWS)))
    assert len(pages) == 2


@pytest.mark.usefixtures("small_answers")
def test_all_records_of_a_jobs_generations_are_read(aws_kit: Kit, wire: Wire) -> None:
    owner = aws_kit.new_owner()
    records = [a_record(owner, revision=number) for number in range(1, 6)]
    for record in records:
        aws_kit.chunks.put_record(record)
    wire.calls.clear()
    read = aws_kit.chunks.get_records(owner, job_id(), consistent=True)
    assert read.rows == {each.revision: each for each in records}
    assert len(wire.calls) > 2
