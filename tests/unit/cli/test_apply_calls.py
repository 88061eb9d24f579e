"""The calls that a manifest is cut into: none is too large for the API."""

import json

from carillon.cli.commands.manifests.applying import calls_of
from carillon.manifest.manifest import Manifest


def test_calendars_count_in_the_size_of_a_call() -> None:
    job = {"schedule": "every 5m", "target": {"type": "task", "name": "t"}, "payload": "x" * 300}
    jobs = {f"job-{number}": {**job, "calendar": {"name": "c"}} for number in range(3_000)}
    text = "y" * 250_000
    calls = list(
        calls_of(Manifest.of({"jobs": jobs, "calendars": {"c": {"icalendar": text}}}), prune=False)
    )

    assert max(len(json.dumps(call)) for call in calls) < 2**20
    assert sum(len(call["jobs"]) for call in calls) == 3_000


def test_jobs_that_claim_one_name_are_judged_in_one_call() -> None:
    """What the API refuses in one call it could not see in two: each would undo the other."""
    job = {"schedule": "every 5m", "target": {"type": "task", "name": "t"}}
    jobs = {
        **{f"job-{number}": job for number in range(1_500)},
        "new": {**job, "was": "Job-3"},
        "JOB-4": {**job, "after": "job-5"},
        "other": {**job, "was": "gone"},
        "another": {**job, "was": "gone"},
        "late": {**job, "after": "gone"},
    }
    calls = [set(call["jobs"]) for call in calls_of(Manifest.of({"jobs": jobs}), prune=False)]

    assert len(calls) > 1
    for names in (
        {"new", "job-3"},
        {"JOB-4", "job-4", "job-5"},
        {"other", "another", "late"},
    ):
        assert any(names <= call for call in calls), names
