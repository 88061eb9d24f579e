"""Results of runs: their beginning in the row, and the whole beside it where the job wants that."""

from typing import Any

import pytest

from carillon.domain.policies import ResultKept
from carillon.domain.run import WHOLE_RESULT_LIMIT_BYTES, Run, RunStatus, cut, one_line
from carillon.errors import StoreUnavailableError
from carillon.executor.targets import Success
from carillon.services.history import History
from tests.unit.executor.kit import World

LONG = "\n".join(f"line {number}" for number in range(200))


def ran(world: World, text: str | None, **options: Any) -> Run:
    """A run whose target has answered so."""
    world.targets.behave = lambda call: Success(text)
    message = world.due(world.create("job", "* * * * *", **options))
    world.handle(message)
    return world.run_of(message)


def test_a_long_result_is_kept_whole_where_the_job_wants_it(world: World) -> None:
    run = ran(world, LONG, result=ResultKept.FULL)
    assert (run.status, run.result, run.result_bytes) == (
        RunStatus.SUCCEEDED,
        one_line(LONG),
        len(LONG),
    )
    assert History(world.runs).whole(run).result == LONG
    assert world.targets.calls[0].keeps_whole


@pytest.mark.parametrize("result", [None, "", '{"rows":3}', "x" * 512])
def test_a_result_that_its_row_has_takes_no_other(world: World, result: str | None) -> None:
    run = ran(world, result, result=ResultKept.FULL)
    assert (run.result, run.result_bytes) == (result, None)
    assert world.runs.get_result(run) is None


@pytest.mark.parametrize(
    "text", ["\u0645\u06cc\u200c\u062e\u0648", "👩\u200d🔧", "10\u00a0000 €", "名\u3000前"]
)
def test_a_whole_result_has_all_characters_of_its_script(world: World, text: str) -> None:
    """Joiners and blanks that Python takes for unprintable; no control characters."""
    run = ran(world, f'{{"said":"{text}\x1b[2J"}}', result=ResultKept.FULL)
    assert History(world.runs).whole(run).result == f'{{"said":"{text} [2J"}}'


def test_otherwise_its_beginning_is_kept(world: World) -> None:
    run = ran(world, LONG)
    assert (run.result, run.result_bytes) == (one_line(LONG), None)
    assert world.runs.get_result(run) is None
    assert not world.targets.calls[0].keeps_whole


def test_a_whole_result_is_bounded(world: World) -> None:
    run = ran(world, "ü" * WHOLE_RESULT_LIMIT_BYTES, result=ResultKept.FULL)
    whole = History(world.runs).whole(run).result
    assert whole == cut("ü" * WHOLE_RESULT_LIMIT_BYTES, WHOLE_RESULT_LIMIT_BYTES)
    assert run.result_bytes == len(whole.encode()) <= WHOLE_RESULT_LIMIT_BYTES


def test_a_store_that_does_not_take_it_costs_no_second_call(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(run: Run, text: str) -> None:
        raise StoreUnavailableError("runs", "throttled")

    monkeypatch.setattr(world.runs, "put_result", away)
    run = ran(world, LONG, result=ResultKept.FULL)
    assert (run.status, run.result, run.result_bytes) == (
        RunStatus.SUCCEEDED,
        one_line(LONG),
        None,
    )
    assert len(world.targets.calls) == 1
