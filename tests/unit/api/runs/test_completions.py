"""Reports about open runs over HTTP: by a token of the attempt, without a JWT."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.execution import completing
from carillon.domain.run import Completion, Run, RunStatus
from tests.unit.api.conftest import NOW, World
from tests.unit.api.gateway import OWNER, Answer, Client, Json, answer_of, event
from tests.unit.api.runs.test_runs import SECOND, make_run, put, stored

TOKEN = completing.token_of(OWNER, "secret")
HOUR = timedelta(hours=1)


@pytest.fixture
def run(world: World, job: Json) -> Run:
    terms = Completion(completing.hash_of(TOKEN), NOW + HOUR, 600, is_open=True)
    row = make_run(
        job["job_id"],
        SECOND,
        status=RunStatus.RUNNING,
        started_at=SECOND,
        attempt_started_at=SECOND,
        lease_until=NOW + timedelta(seconds=90),
        completion=terms,
        waits=1,
        generation_id="01KBD0000000000000000000F1",
    )
    return put(world, row)


def report(
    world: World, run: Run, action: str, body: str | None = None, token: str | None = TOKEN
) -> Answer:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    path = f"/completions/{run.key.run_id}/{action}"
    return answer_of(world.api(), event("POST", path, body=body, headers=headers))


def test_a_run_is_reported_complete_without_a_jwt(world: World, run: Run) -> None:
    answer = report(world, run, "complete", '{"result": {"rows": 3}}')
    assert answer.status == 200
    assert answer.json == {
        "run_id": run.key.run_id,
        "status": "succeeded",
        "attempt": 1,
        "lease_until": None,
        "next_attempt_at": None,
    }
    assert stored(world, run).result == '{"rows":3}'
    (kept,) = world.queue.kept()  # what follows is ordered before the row is put
    assert (kept.message.key, kept.message.waits) == (run.key, 2)
    assert kept.visible_at >= NOW + completing.REPORT_DELAY
    assert '"action":"run.reported"' in world.log.getvalue()
    assert TOKEN not in world.log.getvalue()


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (None, None),
        ("{}", None),
        ('{"result": null}', None),
        ('{"result": "a\\nb"}', "a b"),
        ('{"result": 5}', "5"),
        ('{"result": [1, true]}', "[1,true]"),
    ],
)
def test_a_result_is_any_json(world: World, run: Run, body: str | None, result: str | None) -> None:
    assert report(world, run, "complete", body).status == 200
    assert stored(world, run).result == result


def test_a_result_is_cut_and_bounded(world: World, run: Run) -> None:
    too_large = f'{{"result": "{"x" * 70_000}"}}'
    answer = report(world, run, "complete", too_large)
    assert (answer.status, answer.fields) == (413, ["result"])
    assert report(world, run, "complete", f'{{"result": "{"x" * 5000}"}}').status == 200
    result = stored(world, run).result
    assert result is not None
    assert len(result) == 512


def test_a_reported_result_is_kept_whole_where_the_job_wants_it(
    client: Client, world: World, run: Run
) -> None:
    job_id, run_id = run.key.job_id, run.key.run_id
    assert client.patch(f"/jobs/{job_id}", {"result": "full"}, 1).status == 200
    text = "line\\nline " + "x" * 5000
    for _ in range(2):  # a repetition answers the same
        assert report(world, run, "complete", f'{{"result": "{text}"}}').status == 200
    other = report(world, run, "complete", f'{{"result": "other {text}"}}')
    assert (other.status, other.json["type"].rpartition(":")[2]) == (409, "report-refused")

    whole = text.replace("\\n", "\n")
    for path in (f"/jobs/{job_id}/runs/{run_id}", f"/runs/{run_id}"):
        read = client.get(path).json
        assert (read["result"], read["result_bytes"]) == (whole, len(whole))
    (listed,) = client.get(f"/jobs/{job_id}/runs").json["items"]
    assert listed["result"].startswith("line line xxx")
    assert (len(listed["result"]), listed["result_bytes"]) == (512, len(whole))


@pytest.mark.parametrize("result", ["x" * 40_000, "line\\n" * 200, "  " + "x" * 600])
def test_a_repetition_is_known_by_what_the_history_keeps(
    client: Client, world: World, run: Run, result: str
) -> None:
    """Whatever the whole result has lost at its ends, or beyond its limit."""
    assert client.patch(f"/jobs/{run.key.job_id}", {"result": "full"}, 1).status == 200
    for _ in range(2):
        assert report(world, run, "complete", f'{{"result": "{result}"}}').status == 200


def test_a_run_is_reported_failed(world: World, run: Run) -> None:
    body = '{"message": "no such account", "kind": "account_gone", "permanent": true}'
    answer = report(world, run, "fail", body)
    assert (answer.status, answer.json["status"]) == (200, "dead")
    error = stored(world, run).error
    assert error is not None
    assert (error.kind, error.message, error.permanent) == (
        "account_gone",
        "no such account",
        True,
    )


def test_a_reported_end_is_of_a_claim_of_its_own(world: World, run: Run) -> None:
    """Or a retry would take over the permit of the call that is still under way."""
    report(world, run, "fail", '{"message": "no"}')
    assert stored(world, run).claim_id != run.claim_id


def test_no_policy_retries_what_is_reported_as_permanent(
    world: World, client: Client, run: Run
) -> None:
    retry = {"max_attempts": 3, "retry_on": ["disk_full"]}
    changed = client.send(
        "PATCH", f"/jobs/{run.key.job_id}", {"retry": retry}, headers={"If-Match": "*"}
    )
    assert changed.status == 200, changed.text
    report(world, run, "fail", '{"message": "no", "kind": "disk_full", "permanent": true}')
    assert (stored(world, run).status, stored(world, run).reason) == (RunStatus.DEAD, "refused")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("{}", "message"),
        ('{"message": ""}', "message"),
        ('{"message": "x", "kind": "a b"}', "kind"),
        ('{"message": "x", "kind": "executor_died"}', "kind"),
        ('{"message": "x", "permanent": "yes"}', "permanent"),
        ('{"message": "x", "more": 1}', "more"),
    ],
)
def test_a_bad_failure_changes_nothing(world: World, run: Run, body: str, field: str) -> None:
    answer = report(world, run, "fail", body)
    assert (answer.status, answer.fields) == (422, [field])
    assert stored(world, run) == run
    assert world.queue.kept() == []


def test_a_heartbeat_moves_the_lease_by_one_write_and_sends_nothing(world: World, run: Run) -> None:
    answer = report(world, run, "heartbeat")
    assert (answer.status, answer.json["status"]) == (200, "running")
    assert answer.json["lease_until"] == "2026-03-01T12:10:00.250Z"
    assert stored(world, run).token == run.token + 1
    assert world.queue.kept() == []


@pytest.mark.parametrize("action", ["complete", "fail", "heartbeat"])
@pytest.mark.parametrize(
    "token", [None, "", "x", "secret", f"{TOKEN}x", completing.token_of("user/other", "secret")]
)
def test_any_other_token_finds_nothing(
    world: World, run: Run, action: str, token: str | None
) -> None:
    body = '{"message": "x"}' if action == "fail" else None
    answer = report(world, run, action, body, token)
    assert (answer.status, answer.json["type"]) == (404, "urn:carillon:problem:not-found")
    assert stored(world, run) == run


def test_no_other_run_is_told_apart_from_none(world: World, run: Run, job: Json) -> None:
    plain = put(world, make_run(job["job_id"], SECOND + HOUR, status=RunStatus.RUNNING))
    gone = replace(run, key=replace(run.key, redrive=7))
    answers = {report(world, each, "complete").json["title"] for each in (plain, gone)}
    assert answers == {"Not found"}


def test_an_open_run_is_shown_and_can_be_cancelled(world: World, client: Client, run: Run) -> None:
    path = f"/jobs/{run.key.job_id}/runs/{run.key.run_id}"
    shown = client.get(path).json
    assert (shown["status"], shown["note"]) == (
        "running",
        "open: its target is to report by 2026-03-01T12:01:30Z, and to have ended by "
        "2026-03-01T13:00:00Z",
    )
    assert client.post(f"{path}/cancel").json["status"] == "cancelled"
    (kept,) = world.queue.kept()  # its permits are to be released
    assert kept.message.key == run.key
    answer = report(world, run, "complete")
    assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:report-refused")


def test_reports_are_throttled_by_the_run_s_owner(world: World, run: Run) -> None:
    api = world.api(
        settings=replace(world.settings, owner_requests_per_second=1, owner_requests_burst=2)
    )
    headers = {"Authorization": f"Bearer {TOKEN}"}
    path = f"/completions/{run.key.run_id}/heartbeat"

    def status(given: dict[str, Any]) -> int:
        return answer_of(api, event("POST", path, headers=given)).status

    assert [status({}) for _ in range(5)] == [404] * 5  # nobody uses up what is another's
    assert [status(headers) for _ in range(3)] == [200, 200, 429]
