"""What the checker says of results that are kept whole."""

from carillon.domain.run import RunKey, one_line
from tests.simulation.judging.checker_book import Book, after, found, key_of, only

TEXT = "the result\n" + "x" * 1000


def kept(book: Book) -> RunKey:
    row = book.claimed(key_of(10), after(10))
    book.called(row, after(10.1))
    book.finished(row, after(10.2), result=one_line(TEXT), result_bytes=len(TEXT))
    return row.key


def test_a_whole_result_is_there_and_of_the_attempt_that_the_run_shows() -> None:
    book = Book("at 2026-12-01T12:00:10")
    key = kept(book)
    assert found(book.evidence(60, results={key: TEXT})) == []
    only(book.evidence(60, results={}), "result", "lacks its whole result")
    only(book.evidence(60, results={key: TEXT.replace("the", "a")}), "result", "begins with")
