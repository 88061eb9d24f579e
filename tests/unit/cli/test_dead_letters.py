"""`carillon dead-letters ...`: one run by its id, many by a filter."""

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import FakeApi, Run

RUN_ID = "j1_20260101T000000Z_scheduled_0"
LETTER: dict[str, Any] = {
    "run_id": RUN_ID,
    "job_id": "j1",
    "fire_at": "2026-01-01T00:00:00Z",
    "finished_at": "2026-01-01T00:00:09Z",
    "status": "dead",
    "attempt": 3,
    "reason": "exhausted",
    "error": {"kind": "http_503", "message": "busy", "permanent": False},
}
DONE = {"operation_id": "o1", "kind": "redrive", "state": "succeeded", "done": 7}
FILTERS = [
    "--job", "j1", "--reason", "exhausted", "--error", "http_503", "--from", "2026-01-01",
    "--to", "2026-01-02T00:00:00+02:00",
]  # fmt: skip
MEMBERS = {
    "job_id": "j1",
    "reason": "exhausted",
    "error": "http_503",
    "from": "2026-01-01T00:00:00Z",
    "to": "2026-01-01T22:00:00Z",
}


def test_list_as_table_and_json(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/dead-letters", {"items": [LETTER], "next_cursor": None})
    named = {"job_id": str(LETTER["job_id"]), "name": "nightly"}
    api.answer("GET", "/jobs", {"items": [named], "next_cursor": None})

    header, row = signed_in("dead-letters", "list").stdout.splitlines()
    as_json = signed_in("dead-letters", "list", *FILTERS, "--limit", "5", "--json").stdout

    assert header.split() == [
        "job_name", "fire_at", "finished_at", "attempt", "outcome", "reason", "run_id"
    ]  # fmt: skip
    assert row.split() == [
        "nightly", "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z", "3", "http_503:", "busy",
        "exhausted", RUN_ID,
    ]  # fmt: skip
    assert json.loads(as_json) == [LETTER]
    assert [request.query for request in api.requests if request.path != "/jobs"] == [
        {"limit": "100"},
        {**MEMBERS, "limit": "5"},
    ]


def test_redrive_of_one_shows_the_new_run(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", f"/dead-letters/{RUN_ID}/redrive", {"run_id": "new"}, status=202)

    assert signed_in("dead-letters", "redrive", RUN_ID).stdout == "run_id  new\n"


def test_discard_of_one(signed_in: Run, api: FakeApi) -> None:
    api.answer("DELETE", f"/dead-letters/{RUN_ID}", status=204)

    assert signed_in("dead-letters", "discard", RUN_ID).stdout == f"discarded {RUN_ID}\n"
    answer = json.loads(signed_in("dead-letters", "discard", RUN_ID, "--json").stdout)
    assert answer == {"run_id": RUN_ID, "settled": "discarded"}


YES = {"discard": ["--yes"]}


@pytest.mark.parametrize("command", ["redrive", "discard"])
@pytest.mark.parametrize(
    ("options", "body"),
    [
        (["--all"], {"all": True}),
        (["--job", "j1", "--per-minute", "60"], {"job_id": "j1", "per_minute": 60}),
        (FILTERS, MEMBERS),
    ],
)
def test_many_are_an_operation(
    signed_in: Run, api: FakeApi, command: str, options: list[str], body: dict[str, Any]
) -> None:
    api.answer("POST", f"/dead-letters/{command}", DONE, status=202)

    result = signed_in(
        "dead-letters", command, *options, "--idempotency-key", "k", "--json", *YES.get(command, ())
    )

    assert (result.exit_code, json.loads(result.stdout)) == (0, DONE)
    (request,) = api.requests
    assert request.body == body
    assert request.headers["idempotency-key"] == "k"


def test_one_that_is_not_waited_for_may_still_go_on(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", "/dead-letters/redrive", {**DONE, "state": "running"}, status=202)

    result = signed_in("dead-letters", "redrive", "--all", "--no-wait")

    assert result.exit_code == 0
    assert "state         running" in result.stdout
    assert len(api.requests) == 1
