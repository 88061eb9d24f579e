"""Of many who write one row at the same moment, one wins; which one, everybody knows."""

from collections.abc import Callable

import pytest

from tests.contract.kit import Kit, contend
from tests.contract.writes import WRITES, Write


@pytest.mark.parametrize("prepare", WRITES, ids=lambda prepare: prepare.__name__)
def test_one_of_many_writers_wins(threaded_kit: Kit, prepare: Callable[[Kit], Write]) -> None:
    write = prepare(threaded_kit)
    won = contend(write)
    assert won.count(True) == 1
    assert write.read() == write.row(won.index(True))
