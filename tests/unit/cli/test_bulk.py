"""`carillon jobs import`: chunks, keys, refusals, and what was not reached."""

import json
from pathlib import Path
from typing import Any

import pytest

from carillon.cli.client import ApiClient
from carillon.cli.commands import job_import as bulk
from carillon.cli.commands.job_import import Item, create_all
from carillon.cli.exits import CliError
from tests.unit.cli.conftest import FakeApi, Run

BULK = "/jobs/bulk"
PROBLEM = {
    "title": "Invalid request",
    "status": 422,
    "detail": "",
    "errors": [{"field": "schedule", "message": "is no schedule"}],
}


def _answer(*statuses: int) -> dict[str, Any]:
    return {
        "items": [
            {
                "index": index,
                "status": status,
                "job_id": f"j{index}" if status < 300 else None,
                "problem": PROBLEM if status == 422 else None,
            }
            for index, status in enumerate(statuses)
        ]
    }


def _items(count: int) -> list[Item]:
    return [Item(f"line {number}", {"name": str(number)}) for number in range(count)]


def _names(api: FakeApi) -> list[list[str]]:
    return [[item["name"] for item in request.body["items"]] for request in api.requests]


def test_each_line_has_a_key_of_its_own(signed_in: Run, api: FakeApi, tmp_path: Path) -> None:
    api.answer("POST", BULK, _answer(201, 200, 201))
    file = tmp_path / "jobs.jsonl"
    file.write_text('{"name": "a"}\n\n{"name": "b", "idempotency_key": "mine"}\n{"name": "ā"}\n')

    result = signed_in("jobs", "import", str(file), "--idempotency-key", "k")

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "created 2, existing 1, refused 0, unavailable 0\n"
    assert api.requests[0].body == {
        "items": [
            {"idempotency_key": "k/0", "name": "a"},
            {"idempotency_key": "mine", "name": "b"},
            {"idempotency_key": "k/2", "name": "ā"},
        ]
    }


def test_two_imports_are_two_sets_of_jobs_unless_told_otherwise(
    signed_in: Run, api: FakeApi
) -> None:
    api.answer("POST", BULK, _answer(201))

    for _ in range(2):
        signed_in("jobs", "import", "-", stdin='[{"name": "a"}]')

    first, second = (request.body["items"][0]["idempotency_key"] for request in api.requests)
    assert first != second


def test_refusals_are_named_by_their_place(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", BULK, _answer(422, 201, 410))
    lines = "\n".join(['{"name": "a"}', "", '{"name": "b"}', '{"name": "c"}'])

    result = signed_in("jobs", "import", "-", stdin=lines)

    assert result.exit_code == 3
    assert result.stdout == "created 1, existing 0, refused 2, unavailable 0\n"
    assert result.stderr.splitlines() == [
        "line 1: Invalid request (422)",
        "  schedule: is no schedule",
        "line 4: status 410",
    ]


def test_with_json_every_item_is_told(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", BULK, _answer(201, 422))

    result = signed_in("jobs", "import", "-", "--json", stdin='[{"name": "a"}, {"name": "b"}]')

    assert result.exit_code == 3
    assert json.loads(result.stdout) == {
        "items": [
            {"where": "items[0]", "status": 201, "job_id": "j0", "problem": None},
            {"where": "items[1]", "status": 422, "job_id": None, "problem": PROBLEM},
        ],
        "created": 1,
        "existing": 0,
        "refused": 1,
        "unavailable": 0,
    }


def test_requests_stay_within_the_limits(
    api: FakeApi, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MOST_ITEMS", 3)
    monkeypatch.setattr(bulk, "MOST_BYTES", 40)
    items = [*_items(4), Item("line 5", {"name": "x" * 30}), Item("line 6", {"name": "y" * 50})]
    api.answer("POST", BULK, _answer(201, 201))
    api.then("POST", BULK, _answer(201))

    # {"name": "0"} and its comma are 14 bytes: the bytes end the first request, not the items.
    done = create_all(client, items[:3])
    assert [item.status for item in done] == [201, 201, 201]
    assert _names(api) == [["0", "1"], ["2"]]

    api.requests.clear()
    monkeypatch.setattr(bulk, "MOST_BYTES", 50)
    api.answer("POST", BULK, _answer(201, 201, 201))
    api.then("POST", BULK, _answer(201))
    create_all(client, items)
    assert _names(api) == [["0", "1", "2"], ["3"], ["x" * 30], ["y" * 50]]


def test_what_was_not_reached_is_sent_again_alone(api: FakeApi, client: ApiClient) -> None:
    slept: list[float] = []
    api.answer("POST", BULK, _answer(201, 503, 503))
    api.then("POST", BULK, _answer(503, 503))
    api.then("POST", BULK, _answer(422, 200))

    done = create_all(client, _items(3), slept.append)

    assert _names(api) == [["0", "1", "2"], ["1", "2"], ["1", "2"]]
    assert [item.status for item in done] == [201, 422, 200]
    # The API did something in the first request: it is only waited for after the second.
    assert slept == [1.0]


def test_it_tells_how_far_it_is(
    api: FakeApi, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carillon.cli.commands.job_import.MOST_ITEMS", 2)
    api.answer("POST", BULK, _answer(201, 201))
    api.then("POST", BULK, _answer(201))
    told: list[tuple[str, float, float | None]] = []

    def show(text: str, done: float = 0.0, total: float | None = None) -> None:
        told.append((text, done, total))

    create_all(client, _items(3), show=show)

    assert told == [("2 of 3 jobs", 2, 3), ("3 of 3 jobs", 3, 3)]


def test_an_api_that_reaches_nothing_is_given_up(api: FakeApi, client: ApiClient) -> None:
    slept: list[float] = []
    api.answer("POST", BULK, _answer(201, 503))
    api.then("POST", BULK, _answer(503))

    done = create_all(client, _items(2), slept.append)

    assert [item.status for item in done] == [201, 503]
    assert slept == [1.0, 2.0, 4.0, 8.0]


def test_a_busy_api_does_not_lose_what_is_known(
    api: FakeApi, client: ApiClient, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answer("POST", BULK, _answer(201, 503))
    api.then("POST", BULK, {"message": "Service Unavailable"}, status=503)
    api.then("POST", BULK, _answer(201))

    done = create_all(client, _items(2), lambda seconds: None)

    assert [item.status for item in done] == [201, 201]
    assert "(503)" in capsys.readouterr().err


@pytest.mark.parametrize("status", [503, 401])
def test_an_api_that_never_answered_ends_it(api: FakeApi, client: ApiClient, status: int) -> None:
    api.answer("POST", BULK, {"message": "no"}, status=status)

    with pytest.raises(CliError):
        create_all(client, _items(1))

    assert len(api.requests) == 1


def test_when_the_outcome_is_unknown_it_tells_how_to_repeat(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", BULK, {"message": "no"}, status=504)

    result = signed_in("jobs", "import", "-", stdin='{"name": "a"}')

    key = api.requests[0].body["items"][0]["idempotency_key"].partition("/")[0]
    assert result.exit_code == 7
    assert f"--idempotency-key {key}: no job is created twice" in result.stderr


def test_what_is_left_ends_as_unreachable(
    signed_in: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.answer("POST", BULK, _answer(201, 503))
    api.then("POST", BULK, _answer(503))
    monkeypatch.setattr(bulk, "_IDLE_ROUNDS", 1)

    result = signed_in(
        "jobs", "import", "-", "--idempotency-key", "k", stdin='{"name": "a"}\n{"name": "b"}'
    )

    assert result.exit_code == 7
    assert result.stdout == "created 1, existing 0, refused 0, unavailable 1\n"
    assert result.stderr.splitlines() == [
        "line 2: not reached",
        "Repeat with --idempotency-key k for those that were not reached",
    ]


def test_a_null_key_of_a_line_does_not_lose_its_guard(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", BULK, _answer(201))

    signed_in(
        "jobs", "import", "-", "--idempotency-key", "k",
        stdin='{"name": "a", "idempotency_key": null}',
    )  # fmt: skip

    assert api.requests[0].body == {"items": [{"name": "a", "idempotency_key": "k/0"}]}


def test_one_that_is_too_large_does_not_end_an_import(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", BULK, _answer(201))
    api.then("POST", BULK, {"title": "The request is too large", "status": 413}, status=413)
    api.then("POST", BULK, _answer(201))
    lines = [{"name": "a"}, {"name": "b", "payload": "x" * 1_100_000}, {"name": "c"}]

    result = signed_in("jobs", "import", "-", stdin="\n".join(map(json.dumps, lines)))

    assert result.exit_code == 3
    assert result.stdout == "created 2, existing 0, refused 1, unavailable 0\n"
    assert result.stderr == "line 2: The request is too large (413)\n"


def test_one_that_spoils_its_request_is_told_apart(api: FakeApi, client: ApiClient) -> None:
    """Such as one that is nested too deep: the API refuses the whole body for it."""
    spoilt = {"title": "The body is not JSON that can be stored", "status": 400}
    api.answer("POST", BULK, spoilt, status=400)  # 0 to 3
    api.then("POST", BULK, _answer(201, 201))  # 0, 1
    api.then("POST", BULK, spoilt, status=400)  # 2, 3
    api.then("POST", BULK, spoilt, status=400)  # 2
    api.then("POST", BULK, _answer(200))  # 3

    done = create_all(client, _items(4))

    assert [item.status for item in done] == [201, 201, 400, 200]
    assert done[2].answer is not None
    assert done[2].answer["problem"]["title"] == spoilt["title"]
    assert _names(api) == [["0", "1", "2", "3"], ["0", "1"], ["2", "3"], ["2"], ["3"]]
