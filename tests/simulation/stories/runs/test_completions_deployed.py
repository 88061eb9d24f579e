"""Runs that end by a report, in a deployment of the simulation: requests beside them, and costs."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from carillon.api.runs.completions import ReportRefusedError
from carillon.domain.run import Run, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.executor.targets import Call
from carillon.manifest.manifest import Manifest
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.loop import Loop, Task
from carillon.simulation.run import Plan, Simulation
from carillon.simulation.services import Api, job_body
from carillon.simulation.targets import Behaviour, SimulatedTargets
from carillon.simulation.workload import Workload
from tests.simulation.stories.runs.test_completions import DUE, accepts, target
from tests.simulation.stories.story import MINUTE, NOON, SECOND
from tests.support.world import OWNER


class Deployed:
    """One job in a deployment of the simulation, which has the whole API, and counts calls."""

    def __init__(self, **members: Any) -> None:
        self.loop = Loop(NOON)
        self.token = ""
        self.calls: Counter[str] = Counter()
        self.deployment = Deployment(
            self.loop, Options(), SimulatedTargets(self.loop, self._behave)
        )
        self.api = Api.of(self.deployment)
        body = {"name": "long", "schedule": "1 12 * * *"} | members
        body["target"] = target().model_dump(mode="json")
        self.deployment.invoke("create", lambda: self.api.jobs.create(OWNER, job_body(body), "k"))
        self.deployment.start()
        self.loop.run(self.loop.us_of(DUE - SECOND))
        self.loop.observers.append(self._observe)
        self.loop.run(self.loop.us_of(DUE + SECOND))

    def _behave(self, target: object, call: Call, draws: object) -> Behaviour:
        self.token = call.report_to.token if call.report_to else ""
        return Behaviour(0.0, accepts(call))

    def _observe(self, task: object, port: str, method: str, args: Any, answer: object) -> None:
        self.calls[f"{port}.{method}"] += 1

    @property
    def run(self) -> Run:
        runs = self.deployment.stores.runs.list(OWNER, job_id_of(OWNER, "long"), 10).items
        (run,) = runs
        return run

    def holders(self) -> int:
        row = self.deployment.stores.admission_rows.get(OWNER, "key/db")
        assert row is not None
        return len(row.holders)

    def ask(self, name: str, step: Callable[[], Run]) -> Task:
        """A request, and the ten seconds after it."""
        task = self.deployment.invoke(name, step)
        self.loop.run(self.loop.us + 10_000_000)
        return task


def test_an_open_run_is_cancelled_and_gives_its_permits_back() -> None:
    story = Deployed(concurrency={"key": "db", "limit": 1})
    run_id, job_id = story.run.key.run_id, story.run.key.job_id
    assert (story.run.is_open, story.holders()) == (True, 1)
    story.ask("cancel", lambda: story.api.runs.cancel(OWNER, job_id, run_id))
    late = story.ask("late", lambda: story.api.completions.complete(run_id, story.token, None))
    assert isinstance(late.failure, ReportRefusedError)
    assert (story.run.status, story.holders()) == (RunStatus.CANCELLED, 0)


def test_what_it_costs() -> None:
    """As docs/running.md says: two writes and a message more for an attempt."""
    story = Deployed()
    run_id, service = story.run.key.run_id, story.api.completions
    opened = {"runs.claim": 2, "runs.finish": 1, "jobs.get": 1, "queue.send": 1}
    assert {name: story.calls[name] for name in opened} == opened
    story.calls.clear()
    story.ask("beat", lambda: service.heartbeat(run_id, story.token))
    assert story.calls == {"runs.get": 1, "runs.claim": 1}
    story.calls.clear()
    service.complete(run_id, story.token, None)
    assert story.calls == {"runs.get": 1, "jobs.get": 1, "queue.send": 1, "runs.claim": 1}
    assert story.run.status is RunStatus.SUCCEEDED


def test_a_workload_that_is_rehearsed_has_targets_that_report() -> None:
    queue = {"type": "sqs", "queue_arn": "arn:aws:sqs:eu-west-1:123456789012:work"}
    job = {"schedule": "every 1m", "target": {**queue, "completion": {"within": "1h"}}}
    workload = Workload.of(Manifest.of({"jobs": {"long": job}}))
    simulation = Simulation(workload, Plan(NOON, NOON + 10 * MINUTE))
    simulation.advance(NOON + 10 * MINUTE)
    simulation.settle(lambda: True)
    assert simulation.summary()["outcomes"] == {"succeeded": 10}
