"""The jobs of a stack: applied by each deployment, refused as a whole, pruned."""

from datetime import timedelta
from typing import Any

import pytest

from carillon.api.apply.service import ApplyService
from carillon.api.apply.stack import (
    MOST_REASON_BYTES,
    StackJobs,
    StackRefusedError,
    StackService,
    with_values,
)
from carillon.api.calendars.service import CalendarService
from carillon.api.jobs.service import JobService
from carillon.clock import SeededEntropy
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import Author, AuthorKind, Via, team_owner
from carillon.errors import StoreUnavailableError
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import UNLIMITED
from carillon.stores.ports import JobFilter
from tests.unit.api.conftest import NOW, World
from tests.unit.api.gateway import Json

OWNER, MANAGER = team_owner("billing"), "stack/Billing/Scheduler"
AUTHOR = Author(AuthorKind.MACHINE, "arn:stack", "Billing", Via.STACK)
NIGHTLY = {"schedule": "0 3 * * *", "target": {"type": "task", "name": "echo"}}


class Deployment:
    """Deploys documents, as the custom resource does."""

    def __init__(self, world: World) -> None:
        self.world = world
        ends_at = NOW + timedelta(minutes=5)
        stores: Any = world
        telemetry: Any = None
        clock, entropy = world.clock, SeededEntropy(1)
        self.jobs = JobService(
            stores,
            Indexer.of(stores, clock),
            JobQuotas(UNLIMITED, stores.jobs, stores.uses, clock, entropy),
            clock,
            entropy,
            world.settings,
            telemetry,
        )
        calendars = CalendarService(self.jobs, world.calendars, world.changes, world.clock)
        applying = ApplyService(self.jobs, calendars, world.clock)
        self.service = StackService(applying, world.clock, ends_at, lambda item: None)

    def apply(self, jobs: Json, **more: Any) -> None:
        self.service.apply(StackJobs(OWNER, MANAGER, AUTHOR, {"jobs": jobs, **more}))

    def schedules(self) -> dict[str, str]:
        """Of all jobs that are there."""
        page = self.jobs.select(OWNER, 100, None, JobFilter())
        return {job.spec.name: str(job.spec.schedule) for job in page.items}

    def job(self, name: str) -> Any:
        found = self.world.jobs.get(OWNER, job_id_of(OWNER, name))
        assert found is not None
        return found


@pytest.fixture
def deployment(world: World) -> Deployment:
    return Deployment(world)


def test_jobs_come_change_and_go_with_their_declaration(deployment: Deployment) -> None:
    deployment.apply({"nightly": NIGHTLY, "hourly": {**NIGHTLY, "schedule": "every 1h"}})
    assert deployment.schedules() == {"nightly": "0 3 * * *", "hourly": "every 1h"}
    job = deployment.job("nightly")
    assert (job.managed_by, job.author) == (MANAGER, AUTHOR)

    deployment.apply({"nightly": {**NIGHTLY, "schedule": "0 4 * * *"}})
    assert deployment.schedules() == {"nightly": "0 4 * * *"}
    revision = deployment.job("nightly").revision
    deployment.apply({"nightly": {**NIGHTLY, "schedule": "0 4 * * *"}})
    assert deployment.job("nightly").revision == revision

    deployment.apply({})
    assert deployment.schedules() == {}


def test_one_refused_job_leaves_all_as_it_was_and_names_its_field(deployment: Deployment) -> None:
    deployment.apply({"nightly": NIGHTLY})
    with pytest.raises(StackRefusedError, match="job 'bad': schedule: "):
        deployment.apply({"bad": {**NIGHTLY, "schedule": "99 * * * *"}})
    assert deployment.schedules() == {"nightly": "0 3 * * *"}
    # As the rollback does.
    deployment.apply({"nightly": NIGHTLY})
    assert deployment.job("nightly").revision == 1


def test_of_more_jobs_than_one_call_takes_none_is_written_if_one_is_refused(
    deployment: Deployment,
) -> None:
    jobs = {f"job {number}": NIGHTLY for number in range(1001)}
    bad = {**jobs, "job 1000": {**NIGHTLY, "timezone": "Mars/Olympus"}}
    with pytest.raises(StackRefusedError, match="'job 1000': timezone"):
        deployment.apply(bad)
    assert deployment.schedules() == {}


def test_the_reason_fits_into_an_answer_to_cloudformation(deployment: Deployment) -> None:
    bad = {**NIGHTLY, "schedule": "99 * * * *"}
    with pytest.raises(StackRefusedError) as raised:
        deployment.apply({f"{number:0120}": bad for number in range(100)})
    reason = str(raised.value)
    assert len(reason.encode()) < MOST_REASON_BYTES + 100
    assert reason.endswith(" more")


def test_what_another_one_manages_is_refused_and_what_was_changed_is_overwritten(
    deployment: Deployment,
) -> None:
    deployment.apply({"nightly": NIGHTLY})
    other = StackJobs(OWNER, "stack/Other", AUTHOR, {"jobs": {"nightly": NIGHTLY}})
    with pytest.raises(StackRefusedError, match="nightly"):
        deployment.service.apply(other)
    deployment.service.prune(other, [])
    assert deployment.schedules() == {"nightly": "0 3 * * *"}


def test_a_store_that_fails_for_a_while_is_asked_again(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = deployment.world.jobs.get, [1, 2]

    def get(*arguments: Any, **keywords: Any) -> Any:
        if failures:
            failures.pop()
            raise StoreUnavailableError("away")
        return real(*arguments, **keywords)

    monkeypatch.setattr(deployment.world.jobs, "get", get)
    deployment.apply({"nightly": NIGHTLY})
    assert deployment.schedules() == {"nightly": "0 3 * * *"}


def test_a_store_that_stays_away_fails_the_deployment_in_time(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(*arguments: Any, **keywords: Any) -> Any:
        raise StoreUnavailableError("away")

    monkeypatch.setattr(deployment.world.jobs, "get", get)
    with pytest.raises(StackRefusedError, match="not applied in time"):
        deployment.apply({"nightly": NIGHTLY})
    assert deployment.world.clock.now() - NOW <= timedelta(minutes=6)


def test_references_are_the_values_of_the_deployment() -> None:
    document = {"target": {"queue_arn": {"$ref": "t1"}}, "list": [{"$ref": "t2"}, 3, None]}
    values = {"t1": "arn:aws:sqs:::q", "t2": "x"}
    expected = {"target": {"queue_arn": "arn:aws:sqs:::q"}, "list": ["x", 3, None]}
    assert with_values(document, values) == expected


def test_a_payload_may_look_like_a_reference() -> None:
    told = {"$ref": {"$ref": {"$ref": {"$ref": {"$ref": "t1"}}}}}
    assert with_values({"a": told, "b": {"$ref": {"$ref": "t1"}}}, {"t1": "x"}) == {
        "a": {"$ref": {"$ref": "x"}},
        "b": {"$ref": "t1"},
    }
