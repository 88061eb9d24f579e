"""What a fleet may say, and that all that is wrong with it is named by its place."""

from typing import Any

import pytest

from carillon.errors import InvalidFieldError
from carillon.simulation.workload import (
    BehaviourProfile,
    Workload,
    WorkloadRefusedError,
    document_of,
)

JOB: dict[str, Any] = {"name": "report", "schedule": "@hourly", "target": {"name": "echo"}}
JOB["target"]["type"] = "task"


def refusal(document: object) -> dict[str, str]:
    with pytest.raises(WorkloadRefusedError) as caught:
        Workload.of(document)
    return dict(caught.value.errors)


def test_a_list_of_jobs_is_a_fleet() -> None:
    fleet = Workload.of([JOB, {**JOB, "name": "other"}])

    assert [definition.body.name for definition in fleet.definitions] == ["report", "other"]
    assert {definition.profile for definition in fleet.definitions} == {BehaviourProfile()}


def test_copies_have_numbered_names() -> None:
    fleet = Workload.of({"jobs": [JOB], "simulate": {"report": {"copies": 3, "seconds": 2.5}}})

    names = [body.name for body in fleet.definitions[0].bodies()]
    assert names == ["report-1", "report-2", "report-3"]
    assert fleet.job_count == 3
    assert fleet.definitions[0].profile.seconds == 2.5


def test_every_error_names_the_job_and_the_field() -> None:
    errors = refusal(
        [
            JOB,
            {**JOB, "colour": "red", "retry": {"max_attempts": 0}},
            {"name": "x", "schedule": "@hourly"},
            "no job",
        ]
    )

    assert errors["jobs[1].colour"] == "is not a known field"
    assert "jobs[1].retry.max_attempts" in errors
    assert errors["jobs[2].target"] == "is required"
    assert errors["jobs[3]"] == "must be an object"
    assert not any(path.startswith("jobs[0]") for path in errors)


@pytest.mark.parametrize("document", [None, [], {}, {"jobs": []}, {"jobs": {}}, "text", 7])
def test_a_fleet_has_jobs(document: object) -> None:
    assert "at least one job" in refusal(document)["jobs"]


def test_unknown_members_are_told() -> None:
    errors = refusal(
        {
            "jobs": [JOB],
            "job": [],
            "simulate": {"report": {"second": 1}, "nobody": {}, "r": []},
            "calendars": {"Bad Name": {}, "days": {"dates": ["2026-13-01"]}},
        }
    )

    assert "jobs, calendars, simulate" in errors["job"]
    assert errors["simulate.report.second"] == "is not a known field"
    assert errors["simulate.nobody"] == "names no job of this fleet"
    assert errors["simulate.r"] == "must be an object"
    assert "calendars.Bad Name" in errors
    assert "calendars.days.dates[0]" in errors


@pytest.mark.parametrize(
    "form", [{"copies": 0}, {"copies": 1.5}, {"seconds": -1}, {"failure_rate": 1.1}]
)
def test_what_is_simulated_has_bounds(form: dict[str, Any]) -> None:
    (member,) = form
    assert list(refusal({"jobs": [JOB], "simulate": {"report": form}})) == [
        f"simulate.report.{member}"
    ]


def test_a_fleet_is_limited() -> None:
    jobs = [JOB, {**JOB, "name": "b"}]
    sizes = {"report": {"copies": 150_000}, "b": {"copies": 150_000}}

    assert "300,000" in refusal({"jobs": jobs, "simulate": sizes})["jobs"]


def test_yaml_leaves_to_the_api_what_is_text_there() -> None:
    found = document_of(
        "start: 2026-12-01T09:00:00Z\nday: 2026-12-24\ntime: 9:30\noff: yes\non: no\n"
        "zero: 007\nnone: ~\nempty:\nflag: true\nnumber: -17\nrate: 0.25\nsmall: 1e-3\n"
    )

    assert found == {
        "start": "2026-12-01T09:00:00Z",
        "day": "2026-12-24",
        "time": "9:30",
        "off": "yes",
        "on": "no",
        "zero": "007",
        "none": None,
        "empty": None,
        "flag": True,
        "number": -17,
        "rate": 0.25,
        "small": 0.001,
    }


def test_yaml_has_anchors_and_merges() -> None:
    found = document_of("a: &base {x: 1, y: 2}\nb:\n  <<: *base\n  y: 3\n")

    assert found == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}}


def test_json_is_yaml() -> None:
    assert document_of('[{"a": [1, "2026-12-01"]}]') == [{"a": [1, "2026-12-01"]}]
    assert document_of("{a: [1, b]}") == {"a": [1, "b"]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2\n", "line 2: the key 'a' appears twice"),
        ('{"a": 1,\n"a": 2}', "line 2: the key 'a' appears twice"),
        ("1: a\n", "line 1: a key that is not text"),
        ("jobs:\n  - [unclosed\n", "line 3"),
        ("a: !!python/object/apply:os.system [ls]\n", "line 1"),
        ("a: *nowhere\n", "line 1"),
    ],
)
def test_bad_yaml_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(InvalidFieldError, match="is not YAML") as caught:
        document_of(text)
    assert told in caught.value.message


def test_a_document_that_holds_itself_is_refused() -> None:
    errors = refusal(document_of("- &a\n  name: x\n  payload: *a\n"))

    assert "jobs[0]" in errors
