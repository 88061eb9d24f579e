"""What functions ask of DynamoDB in simulated worlds, held against the rights of their roles.

No emulator knows rights: a request that a role may not make fails on AWS alone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from carillon.settings import Settings
from carillon.simulation.deployment import Deployment
from carillon.simulation.loop import Loop, Process
from tests.contract.kit import Kit, moto_kit
from tests.contract.wire import Call, Wire
from tests.infra.stacks import SynthesizedStack
from tests.infra.test_permissions import BY_OWNER, EXECUTORS, QUERY, stated
from tests.simulation.worlds.runner import run
from tests.simulation.worlds.scenario_file import world_of
from tests.simulation.worlds.scenario_parts import Chunks

SEEDS = range(12)
OUTPUTS = {"jobs_table": "JobsTable", "runs_table": "RunsTable", "wheel_table": "WheelTable"}
REPEATED = 4
"""Calls of a function to a method of a store that are made on DynamoDB, too: it differs little in
what it asks, and moto takes 10 ms."""
FUNCTIONS = {
    **{"tick": "tick", "other": "tick", "batch": "executor"},
    **{"spread": "an operator", "reindex": "an operator"},
}
"""By the first word of a process's name; all others are the api's."""

Asked = set[tuple[str, str]]


class Shadow:
    """Repeats calls of simulated stores on DynamoDB, and keeps what functions asked by that."""

    def __init__(self, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: dict[str, Asked] = {}
        self._kit = kit
        self._wire = Wire(monkeypatch)
        self._repeated: Counter[tuple[str, str, str]] = Counter()
        self._of_dead_letters: list[Process] = []
        effect, batch = Loop._effect, Deployment._batch

        def shadowed(loop: Loop, task: Any, port: str, method: str, *rest: Any) -> Any:
            answer = effect(loop, task, port, method, *rest)
            if task is not None and hasattr(kit, port) and port not in ("queue", "events"):
                self._repeat(self._function(task.process), port, method, *rest[1:])
            return answer

        def noted(deployment: Deployment, queue: Any, received: Any) -> None:
            if queue is deployment.dead_letter_queue and deployment.loop.current is not None:
                self._of_dead_letters.append(deployment.loop.current.process)
            batch(deployment, queue, received)

        monkeypatch.setattr(Loop, "_effect", shadowed)
        monkeypatch.setattr(Deployment, "_batch", noted)

    def _function(self, process: Process) -> str:
        if process in self._of_dead_letters:
            return "dead-letter-consumer"
        return FUNCTIONS.get(process.name.split()[0], "api")

    def _repeat(
        self, function: str, port: str, method: str, args: Any, kwargs: Mapping[str, Any]
    ) -> None:
        what = function, port, method
        if self._repeated[what] == REPEATED:
            return
        self._wire.calls.clear()
        answer = getattr(getattr(self._kit, port), method)(*args, **kwargs)
        if isinstance(answer, Iterator):
            list(answer)
        asked = {each for call in self._wire.calls for each in resources(call, self._kit.settings)}
        self._repeated[what] += bool(asked)
        self.asked.setdefault(function, set()).update(asked)


def resources(call: Call, settings: Settings | None) -> Iterator[tuple[str, str]]:
    """The tables or the index that a request is for, each with its action."""
    names = {getattr(settings, field): output for field, output in OUTPUTS.items()}
    index = f"/index/{call.body['IndexName']}" if "IndexName" in call.body else ""
    for table in call.body.get("RequestItems") or [call.body["TableName"]]:
        yield names[table] + index, f"dynamodb:{call.operation}"


@pytest.fixture(scope="module")
def asked() -> Iterator[dict[str, Asked]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        with moto_kit() as kit:
            shadow = Shadow(kit, patch)
            for seed in SEEDS:
                run(world_of(seed, Chunks.ON))
            yield shadow.asked


@pytest.mark.parametrize("function", ["tick", "executor", "dead-letter-consumer", "api"])
def test_a_function_asks_nothing_that_its_role_may_not(
    production: SynthesizedStack, asked: dict[str, Asked], function: str
) -> None:
    for role in EXECUTORS if function == "executor" else [function]:
        granted = stated(production, role, "Allow")
        missing = {each for each in asked[function] if each[1] not in granted.get(each[0], ())}
        assert not missing, f"{role} may not {missing}"


def test_hand_overs_are_among_what_executors_ask(asked: dict[str, Asked]) -> None:
    """They once had no right to the index, and no emulator told."""
    assert (BY_OWNER, QUERY) in asked["executor"]
