"""`carillon hand-over`."""

import json

import pytest

from tests.unit.cli.conftest import FakeApi, Run

PATH = "/jobs/hand-over"
BEGUN = {"operation_id": "o1", "kind": "hand_over", "state": "running", "done": 0, "left": []}
JOB_ID = "0" * 26


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ([JOB_ID], {"job_id": JOB_ID}),
        (["--all", "--yes"], {"all": True}),
        (["--parent", "p", "--tag", "a=1", "--yes"], {"parent": "p", "tags": {"a": "1"}}),
        (["--all", "--force", "--yes"], {"all": True, "force": True}),
    ],
)
def test_it_says_which_jobs_go_to_whom(
    signed_in: Run, api: FakeApi, given: list[str], sent: dict[str, object]
) -> None:
    api.answer("POST", PATH, BEGUN, status=202)

    result = signed_in("hand-over", *given, "--to", "growth", "--json", "--team", "billing")

    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == BEGUN
    assert api.requests[-1].body == {"to": "growth", **sent}


@pytest.mark.parametrize("given", [[], [JOB_ID, "--all"], ["--parent", "p", "--all"]])
def test_it_must_be_said_which_and_once(signed_in: Run, api: FakeApi, given: list[str]) -> None:
    result = signed_in("hand-over", *given, "--to", "growth", "--yes")
    assert (result.exit_code, api.requests) == (2, [])
    assert "give either a JOB" in result.stderr


def test_many_jobs_are_asked_about(signed_in: Run, api: FakeApi) -> None:
    result = signed_in("hand-over", "--all", "--to", "growth")
    assert (result.exit_code, api.requests) == (2, [])


def test_with_wait_what_has_stayed_is_shown(
    signed_in: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carillon.cli.polling.INTERVAL_SECONDS", 0.0)
    api.answer("POST", PATH, BEGUN, status=202)
    ended = {**BEGUN, "state": "succeeded", "done": 1, "left": ["a: team/growth has a job 'a'"]}
    api.answer("GET", "/operations/o1", ended)

    result = signed_in("hand-over", "--all", "--yes", "--to", "growth", "--wait")

    assert result.exit_code == 0
    assert "a: team/growth has a job 'a'" in result.stdout
