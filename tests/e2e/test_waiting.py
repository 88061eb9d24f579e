"""What waits for minutes on the deployed stack; the last file, since others run meanwhile."""

from datetime import datetime

import pytest

from tests.e2e.conftest import LATE_RETRY_SECONDS, Json, Person

pytestmark = pytest.mark.e2e

LAG_LIMIT_SECONDS = 1.5


def test_a_retry_beyond_the_queues_delay_comes_on_its_second(
    alice: Person, late_retry: Json
) -> None:
    (run,) = alice.ended_runs(late_retry, 1, within_seconds=LATE_RETRY_SECONDS + 30)
    one = alice.http.get(f"/jobs/{late_retry['job_id']}/runs/{run['run_id']}").json()
    first, second = one["attempts"]
    failed_at, started_at = map(
        datetime.fromisoformat, (first["finished_at"], second["started_at"])
    )
    waited = (started_at - failed_at).total_seconds()
    # Retries are due in whole seconds: up to one more than the backoff says.
    assert LATE_RETRY_SECONDS <= waited <= LATE_RETRY_SECONDS + 1 + LAG_LIMIT_SECONDS
