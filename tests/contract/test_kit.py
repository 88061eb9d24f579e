"""How an implementation from elsewhere joins the suite, and what docs/stores.md says of it."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from carillon.stores.memory import MemoryVersionedRows
from tests.contract.kit import Kit, memory_kit, named_kit


@contextmanager
def a_kit_that_closes() -> Iterator[Kit]:
    yield memory_kit()


@pytest.mark.parametrize("function", [memory_kit, a_kit_that_closes])
def test_a_kit_is_opened_by_the_name_of_its_function(function: object) -> None:
    name = f"{function.__module__}:{function.__name__}"  # type: ignore[attr-defined]
    with named_kit(name) as kit:
        assert isinstance(kit, Kit)
        assert kit.jobs.get(kit.new_owner(), "job") is None


def test_the_example_of_the_docs_is_the_code() -> None:
    text = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()
    assert inspect.getsource(MemoryVersionedRows) in text
