"""What a workload may say, and that all that is wrong with it is named by its place."""

from typing import Any

import pytest

from carillon.manifest.manifest import Manifest, ManifestRefusedError
from carillon.simulation.workload import BehaviourProfile, Workload

JOB: dict[str, Any] = {"schedule": "@hourly", "target": {"type": "task", "name": "echo"}}


def workload(document: object) -> Workload:
    return Workload.of(Manifest.of(document))


def refusal(document: object) -> dict[str, str]:
    with pytest.raises(ManifestRefusedError) as caught:
        workload(document)
    return {".".join(path): message for path, message in caught.value.errors}


def test_each_job_has_a_definition() -> None:
    found = workload({"jobs": {"report": JOB, "other": {**JOB, "was": "another"}}})

    assert [definition.body.name for definition in found.definitions] == ["report", "other"]
    assert {definition.profile for definition in found.definitions} == {BehaviourProfile()}


def test_copies_have_numbered_names() -> None:
    found = workload({"jobs": {"a": JOB}, "simulate": {"a": {"copies": 3, "seconds": 2.5}}})

    assert [body.name for body in found.definitions[0].bodies()] == ["a-1", "a-2", "a-3"]
    assert found.job_count == 3
    assert found.definitions[0].profile.seconds == 2.5


def test_every_error_names_the_member() -> None:
    errors = refusal(
        {
            "jobs": {
                "good": JOB,
                "a": {**JOB, "colour": "red", "retry": {"max_attempts": 0}},
                "b": {"schedule": "@hourly"},
                "a/b": JOB,
            },
            "simulate": {"good": {"second": 1}},
            "calendars": {"Bad Name": {}, "days": {"dates": ["2026-13-01"]}},
        }
    )

    assert errors["jobs.a.colour"] == "is not a known field"
    assert "jobs.a.retry.max_attempts" in errors
    assert errors["jobs.b.target"] == "is required"
    assert "jobs.a/b.name" in errors
    assert not any(path.startswith("jobs.good") for path in errors)
    assert errors["simulate.good.second"] == "is not a known field"
    assert "calendars.Bad Name" in errors
    assert "calendars.days.dates[0]" in errors


def test_a_workload_has_jobs() -> None:
    assert refusal({}) == {"jobs": "must have at least one job"}


@pytest.mark.parametrize(
    "form", [{"copies": 0}, {"copies": 1.5}, {"seconds": -1}, {"failure_rate": 1.1}]
)
def test_behaviour_has_bounds(form: dict[str, Any]) -> None:
    (member,) = form
    assert list(refusal({"jobs": {"a": JOB}, "simulate": {"a": form}})) == [f"simulate.a.{member}"]


def test_a_workload_is_limited() -> None:
    sizes = {"a": {"copies": 150_000}, "b": {"copies": 150_000}}

    assert "300,000" in refusal({"jobs": {"a": JOB, "b": JOB}, "simulate": sizes})["jobs"]


def test_a_document_that_holds_itself_is_refused() -> None:
    job: dict[str, Any] = {}
    job["payload"] = job
    errors = refusal({"jobs": {"a": job}})

    assert "is not JSON" in errors["jobs.a"]
