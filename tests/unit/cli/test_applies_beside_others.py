"""apply, while others change the same jobs: the rest is done, or nothing is, and it says which."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from carillon.api.apply.plan import ItemAction
from carillon.api.apply.service import ApplyService
from carillon.api.http.problems import Kind, ProblemError
from carillon.cli.commands.manifests.applying import Applier
from carillon.cli.exits import ExitCode
from carillon.domain.job import Job
from carillon.domain.policies import Overlap
from carillon.domain.spec.names import job_id_of
from carillon.errors import StoreUnavailableError
from tests.unit.api.conftest import World
from tests.unit.api.gateway import OWNER
from tests.unit.cli.test_manifests import MANIFEST, Carillon, carillon, file, jobs_of, world

__all__ = ["carillon", "file", "world"]


def beside(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    """Another apply, of what `change` makes of the jobs, comes between plan and first call."""
    once = Applier._tried

    def after_another(self: Applier, call: Any) -> Any:
        monkeypatch.setattr(Applier, "_tried", once)
        assert self._sent({**call, "expect": None, "jobs": change(call["jobs"])})["written"]
        return once(self, call)

    monkeypatch.setattr(Applier, "_tried", after_another)
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def not_reached(
    monkeypatch: pytest.MonkeyPatch, name: str, meanwhile: Callable[[], object] = lambda: None
) -> None:
    """The first call does not come to this item in its time."""
    service = ApplyService._carried_out

    def once(self: Any, step: Any, item: Any, until: Any, tell: Any) -> Any:
        if step.name == name:
            monkeypatch.setattr(ApplyService, "_carried_out", service)
            meanwhile()
            problem = ProblemError(Kind.UNAVAILABLE, "not reached in time")
            return replace(item, action=ItemAction.UNAVAILABLE, problem=problem)
        return service(self, step, item, until, tell)

    monkeypatch.setattr(ApplyService, "_carried_out", once)
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def test_an_apply_beside_one_that_was_killed_does_what_is_left(
    carillon: Carillon, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API still carries out the call of a client that is gone."""
    beside(monkeypatch, lambda jobs: {"report": jobs["report"]})

    done = carillon("apply", str(file))

    assert done.exit_code == 0, done.output
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "2 unchanged, 1 created")
    assert {job["revision"] for job in jobs_of(carillon).values()} == {1}


def test_an_apply_of_what_others_change_meanwhile_writes_nothing(
    carillon: Carillon, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(monkeypatch, lambda jobs: {"sync": {**jobs["sync"], "schedule": "every 7m"}})

    refused = carillon("apply", str(file))

    assert (refused.exit_code, "The plan has changed" in refused.stderr) == (6, True)
    assert {name: job["schedule"] for name, job in jobs_of(carillon).items()} == {
        "sync": "every 7m"
    }


def test_what_others_change_meanwhile_is_not_reported_as_done(
    carillon: Carillon, file: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part was not reached at first, and the rest cannot be carried out any more."""
    carillon("apply", str(file))
    file.write_text(MANIFEST.replace("every 5m", "every 7m").replace("0 6 * *", "0 7 * *"))

    def change() -> None:
        stored = world.jobs.get(OWNER, job_id_of(OWNER, "sync"))
        assert stored is not None
        spec = stored.spec.model_copy(update={"overlap": Overlap.SKIP})
        forced = replace(stored, spec=spec, revision=stored.revision + 1)
        assert world.jobs.replace(forced, stored.revision)

    not_reached(monkeypatch, "sync", change)
    done = carillon("apply", str(file), "--prune")

    assert done.exit_code == ExitCode.CONFLICT, done.output
    assert "! drift       sync" in done.stdout
    assert "Not all of it was carried out" in done.stderr
    assert jobs_of(carillon)["sync"]["schedule"] == "every 5m"


def test_what_the_first_of_two_calls_deleted_is_reported(
    carillon: Carillon, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carillon("apply", str(file))
    file.write_text(f"{MANIFEST.partition('jobs:')[0]}jobs: {{}}\n")
    not_reached(monkeypatch, "sync")

    done = carillon("apply", str(file), "--prune", "--yes")

    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "1 unchanged, 2 deleted")
    assert jobs_of(carillon) == {}


def test_a_renaming_that_is_half_done_is_done(
    carillon: Carillon, file: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job has ended under the one name, and the store failed before it was there under the
    other: nobody else has changed it, and it must not stay so."""
    carillon("apply", str(file))
    file.write_text(MANIFEST.replace("  sync:", "  pull:\n    was: sync"))
    create = world.jobs.create

    def once(job: Job) -> bool:
        monkeypatch.setattr(world.jobs, "create", create)
        raise StoreUnavailableError("down")

    monkeypatch.setattr(world.jobs, "create", once)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    done = carillon("apply", str(file))

    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "2 unchanged, 1 renamed")
    assert "pull" in jobs_of(carillon)
