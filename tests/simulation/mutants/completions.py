"""Bugs planted into runs that end by a report."""

from dataclasses import replace
from typing import Any

import carillon.domain.admission.limits as limits
import carillon.domain.execution.completing as completing
from carillon.api.runs.completions import CompletionService
from carillon.domain.execution.completing import Standing
from carillon.domain.run import Run, RunStatus
from carillon.executor.runs.completions import Completions
from carillon.simulation.faults import Draws
from tests.simulation.mutants.kit import (
    Code,
    Mutant,
    Swap,
    bodied,
    both,
    instead,
    scheduled,
    small,
)


class _Mute:
    """An indexer that sends nothing."""

    def schedule_message(self, message: object) -> None:
        pass


def _open_without_check(original: Code) -> Code:
    def open_it(self: Completions, run: Run, over: Run, context: Any) -> Any:
        ports = self._ports
        self._ports = replace(ports, indexer=_Mute())  # type: ignore[arg-type]
        try:
            return original(self, run, over, context)
        finally:
            self._ports = ports

    return open_it


def _takes_late_ones(original: Code) -> Code:
    def standing_of(run: Run | None, token: str) -> Standing:
        standing: Standing = original(run, token)
        is_under_way = run is not None and run.status is RunStatus.RUNNING
        late = standing is Standing.TAKEN_OVER and is_under_way
        return Standing.CURRENT if late else standing

    return standing_of


def _revives(original: Code) -> Code:
    def heartbeat(self: CompletionService, run_id: str, token: str) -> Run:
        run, standing = self._find(run_id, token)
        longer = completing.heartbeat(run, self._clock.now())
        if standing is not Standing.CURRENT or longer is None or not run.is_open:
            return run
        self._runs.claim(longer, self._runs.get(run.key))
        return longer

    return heartbeat


_TERMS = {"within": "2m", "heartbeat": "10s"}
_TARGET = {"type": "webhook", "url": "https://example.com/hook", "completion": _TERMS}


def _reports(body: dict[str, Any], draws: Draws) -> dict[str, Any]:
    return {**body, "target": _TARGET}


_REPORTING = both(
    small(8),
    scheduled("every 30s", "every 45s", overlap="allow", timeout_seconds=5),
    bodied(_reports),
)

COMPLETIONS = (
    Mutant(
        "open_without_check",
        ("I1",),
        "nobody comes for a run that is open, and about which nobody reports",
        (Swap(Completions, "open", _open_without_check),),
        reshape=_REPORTING,
    ),
    Mutant(
        "late_report_accepted",
        ("completion",),
        "a report about an attempt that others have followed counts for the run",
        (Swap(completing, "standing_of", _takes_late_ones),),
        reshape=_REPORTING,
    ),
    Mutant(
        "heartbeat_revives",
        ("I4", "completion"),
        "a heartbeat is written over whatever the row has become since it was read",
        (Swap(CompletionService, "heartbeat", _revives),),
        reshape=_REPORTING,
    ),
    Mutant(
        "permit_not_kept",
        ("completion",),
        "a run that is open gives its permit back when its call has ended",
        (Swap(limits, "kept", instead(lambda gate, run: None)),),
        reshape=both(
            _REPORTING,
            bodied(lambda body, draws: {**body, "concurrency": {"key": "k", "limit": 1}}),
        ),
    ),
)
