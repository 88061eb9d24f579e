"""What a malformed entry a minute and a malformed control item in one segment cost all others.

`make drill-bad-items`, or `python -m tests.e2e.drills.bad_items [--minutes 4]`: a stack of its own
with 16 segments. In one of them a dated entry whose generation tells no time is put for each
minute, and half-way its control item is spoilt. A job `every 5s` of another owner stands in each of
the other segments. At last `carillon admin mend-segment` brings the segment back.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Event, Thread
from time import sleep

from carillon.domain.job import segment_of
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel.entry import minute_of
from carillon.local.deployment import Deployment, aws_environment
from carillon.local.emulator import REPOSITORY
from tests.e2e.conftest import SEGMENTS, Json, Person, deployed, instant, owner_of, person, task
from tests.e2e.drills.neighbours import Lags

BAD_SEGMENT = 14
ON_TIME_SECONDS = 3.0
"""1.5 s are promised; the emulator's idle poll takes up to another one."""
_AHEAD_MINUTES = 3
_SETTLED_SECONDS = 2 * ON_TIME_SECONDS


@dataclass(frozen=True)
class Drill:
    """The lags of the other segments' jobs, how many of their occurrences did not run, and whether
    the bad segment's own job came back after the mend."""

    lags: Lags
    missing: int
    came_back: bool
    mend: str

    @property
    def holds(self) -> bool:
        on_time = bool(self.lags.seconds) and self.lags.seconds[-1] <= ON_TIME_SECONDS
        return self.missing == 0 and on_time and self.came_back

    def __str__(self) -> str:
        return (
            f"jobs in the {SEGMENTS - 1} other segments: {self.lags}\n"
            f"occurrences that did not run: {self.missing}\n"
            f"the bad segment after its mend: {'fires' if self.came_back else 'does not fire'}\n"
            f"{self.mend}"
        )


def drill(deployment: Deployment, bystander: Person, measured: timedelta) -> Drill:
    """Put bad items into one segment while jobs of another owner fire in all."""
    jobs = {segment: _create(bystander, segment) for segment in range(SEGMENTS)}
    own = jobs.pop(BAD_SEGMENT)
    over = Event()
    planter = Thread(target=_plant_entries, args=(deployment, over), daemon=True)
    planter.start()
    since = datetime.now(UTC) + timedelta(seconds=5)
    sleep(measured.total_seconds() / 2)
    _spoil_control(deployment)
    sleep(measured.total_seconds() / 2)
    until = datetime.now(UTC)
    sleep(_SETTLED_SECONDS)
    lags: list[float] = []
    missing = 0
    for job in jobs.values():
        found = succeeded_of(bystander, job, since, until)
        lags += found.values()
        missing += sum(at not in found for at in times(since, until))
    over.set()
    planter.join()
    mend = _mend(deployment)
    came_back = _fires_after(bystander, own, datetime.now(UTC))
    for job in (*jobs.values(), own):
        bystander.http.delete(f"/jobs/{job['job_id']}")
    return Drill(Lags(tuple(sorted(lags))), missing, came_back, mend)


def _create(person: Person, segment: int) -> Json:
    """A job `every 5s` whose name leads to this segment."""
    owner = owner_of(person)
    names = (f"bad items {number}" for number in count())
    name = next(n for n in names if segment_of(job_id_of(owner, n), SEGMENTS) == segment)
    body = {"name": name, "schedule": "every 5s", "target": task("echo")}
    answer = person.http.post("/jobs", json=body)
    assert answer.status_code == 201, answer.text
    job: Json = answer.json()
    return job


def _plant_entries(deployment: Deployment, over: Event) -> None:
    """A bad dated entry for each minute to come, before the ticks announce it."""
    table, dynamodb = deployment.outputs["WheelTable"], deployment.client("dynamodb")
    planted = 0
    while not over.wait(1):
        minute = minute_of(datetime.now(UTC)) + _AHEAD_MINUTES
        if minute == planted:
            continue
        planted = minute
        dynamodb.put_item(
            TableName=table,
            Item={
                "segment_slot": {"S": f"{BAD_SEGMENT}#m{minute}"},
                "entry_key": {"S": f"{'0' * 26}#notaulid"},
                "o": {"S": "nobody"},
                "f": {"N": str((minute - 60) * 60_000_000)},
                "s": {"S": "every 1m"},
            },
        )


def _spoil_control(deployment: Deployment) -> None:
    deployment.client("dynamodb").update_item(
        TableName=deployment.outputs["WheelTable"],
        Key={"segment_slot": {"S": f"{BAD_SEGMENT}#control"}, "entry_key": {"S": "control"}},
        UpdateExpression="SET #token = :text",
        ExpressionAttributeNames={"#token": "token"},
        ExpressionAttributeValues={":text": {"S": "seven"}},
    )


def _mend(deployment: Deployment) -> str:
    """What `carillon admin mend-segment` says, run as an operator runs it."""
    command = [str(REPOSITORY / ".venv" / "bin" / "carillon"), "admin", "mend-segment"]
    done = subprocess.run(
        [*command, str(BAD_SEGMENT)],
        env=aws_environment(deployment.endpoint_url, os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def succeeded_of(
    person: Person, job: Json, since: datetime, until: datetime
) -> dict[datetime, float]:
    """The occurrences in a span whose runs have succeeded, with their lags in seconds."""
    runs = person.every(f"/jobs/{job['job_id']}/runs", **{"from": f"{since:%Y-%m-%dT%H:%M:%SZ}"})
    return {
        fire_at: run["lag_seconds"]
        for run in runs
        if since <= (fire_at := instant(run["fire_at"])) <= until and run["status"] == "succeeded"
    }


def times(since: datetime, until: datetime) -> Sequence[datetime]:
    """The instants of `every 5s` in a span."""
    first = -(-int(since.timestamp()) // 5) * 5
    seconds = range(first, int(until.timestamp()) + 1, 5)
    return [at for s in seconds if since <= (at := datetime.fromtimestamp(s, UTC)) <= until]


def _fires_after(person: Person, job: Json, mended_at: datetime) -> bool:
    """Whether a job fires again for instants after the mend, within three ticks."""
    for _ in range(36):
        if succeeded_of(person, job, mended_at, datetime.now(UTC)):
            return True
        sleep(5)
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.drills.bad_items")
    parser.add_argument("--minutes", type=float, default=4, help="that are measured")
    given = parser.parse_args(arguments)
    with (
        deployed({"segments": SEGMENTS}) as deployment,
        person(deployment, "bystander") as bystander,
    ):
        found = drill(deployment, bystander, timedelta(minutes=given.minutes))
    verdict = "holds" if found.holds else "does not hold"
    sys.stdout.write(f"{found}\nthe promise {verdict}\n")
    return 0 if found.holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
