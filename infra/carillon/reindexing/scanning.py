"""All jobs of a deployment, page by page."""

from collections.abc import Iterator
from functools import partial

from carillon.domain.job import Job
from carillon.stores.cursors import pages
from carillon.stores.ports import JobStore

PAGE = 500


def scanned(jobs: JobStore, left: list[str]) -> Iterator[Job]:
    """Each job as its row was a second ago or less; `left` gets the reasons why rows cannot be
    read. Raises StoreUnavailableError."""
    for page in pages(partial(jobs.scan, PAGE)):
        left += page.unreadable.values()
        yield from page.items
