"""Bugs planted into results that are kept whole."""

from typing import Any

from carillon.domain.job import Job
from carillon.domain.run import Run
from carillon.executor.runs import call
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.protocol import RunProtocol
from carillon.stores.memory.runs import MemoryRunStore
from tests.simulation.mutants.kit import Code, Mutant, Swap, bodied, both, faulty


def _of_the_run(original: Code) -> Code:
    def put_result(self: MemoryRunStore, run: Run, text: str) -> None:
        self._results[run.key, ""] = text

    return put_result


def _of_the_run_read(original: Code) -> Code:
    def get_result(self: MemoryRunStore, run: Run) -> str | None:
        return self._results.get((run.key, ""))

    return get_result


_held: dict[str, str] = {}


class _Holding:
    def put_result(self, run: Run, text: str) -> None:
        _held[run.claim_id] = text


def _held_back(original: Code) -> Code:
    def with_result(runs: Any, run: Run, job: Job, text: str | None) -> Run:
        ended: Run = original(_Holding(), run, job, text)
        return ended

    return with_result


def _put_after(original: Code) -> Code:
    def follow_up(self: RunProtocol, run: Run, context: RunContext) -> Any:
        text = _held.pop(run.claim_id, None)
        if text is not None:
            self._ports.runs.put_result(run, text)
        return original(self, run, context)

    return follow_up


_full = bodied(lambda body, draws: body | {"result": "full"})

RESULTS = (
    Mutant(
        "result_of_the_run",
        ("result",),
        "whole results are kept by run, not by claim: who was taken over puts its own over the "
        "winner's",
        (
            Swap(MemoryRunStore, "put_result", _of_the_run),
            Swap(MemoryRunStore, "get_result", _of_the_run_read),
        ),
        both(_full, faulty(paused=0.1)),
    ),
    Mutant(
        "result_after_finish",
        ("result",),
        "a whole result is put when its run has ended: who dies between leaves a run without it",
        (
            Swap(call, "with_result", _held_back),
            Swap(RunProtocol, "follow_up", _put_after),
        ),
        both(_full, faulty(dies=0.05)),
    ),
)
