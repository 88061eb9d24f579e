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
