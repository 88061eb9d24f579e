"""Exit codes, and problems on stderr."""

import json
import socket

import pytest

from tests.unit.cli.conftest import FakeApi, Run

PROBLEM = {
    "type": "about:blank",
    "title": "Invalid request",
    "status": 422,
    "detail": "2 fields are wrong",
    "errors": [
        {"field": "schedule", "message": "is no schedule"},
        {"field": "payload", "message": "is too large"},
    ],
}


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [
        (400, 3), (413, 3), (415, 3), (422, 3), (401, 5), (403, 5), (404, 4), (410, 4),
        (409, 6), (412, 6), (428, 6), (429, 7), (503, 7), (504, 7), (500, 1), (502, 1),
        (405, 1), (301, 1),
    ],
)  # fmt: skip
def test_each_status_has_its_exit_code(
    signed_in: Run,
    api: FakeApi,
    status: int,
    exit_code: int,
) -> None:
    api.answer("GET", "/jobs/j1", {**PROBLEM, "status": status}, status=status)

    result = signed_in("jobs", "show", "j1")

    assert (result.exit_code, result.stdout) == (exit_code, "")


def test_a_request_that_comes_too_soon_is_sent_again(
    signed_in: Run, api: FakeApi, waits: list[float]
) -> None:
    api.answer("GET", "/jobs/j1", {**PROBLEM, "status": 429}, status=429)
    api.then("GET", "/jobs/j1", {**PROBLEM, "status": 429}, status=429)
    api.then("GET", "/jobs/j1", {"job_id": "j1"})

    assert signed_in("jobs", "show", "j1").exit_code == 0
    assert (len(api.requests), waits) == (3, [1, 1])


def test_a_problem_is_printed_field_by_field(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", "/jobs", PROBLEM, status=422)

    result = signed_in("jobs", "create", "--task", "a")

    assert result.stderr.splitlines() == [
        "Error: Invalid request (422)",
        "  schedule: is no schedule",
        "  payload: is too large",
    ]
    api.answer("POST", "/jobs", {"title": "Gone", "status": 410, "detail": "it ended"}, status=410)
    assert signed_in("jobs", "create", "--task", "a").stderr == "Error: Gone (410): it ended\n"


def test_with_json_the_problem_is_json(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", "/jobs", PROBLEM, status=422)

    assert json.loads(signed_in("--json", "jobs", "create", "--task", "a").stderr) == PROBLEM


def test_the_gateways_own_401_becomes_a_problem(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/status", {"message": "Unauthorized"}, status=401)

    assert signed_in("status").stderr == (
        "Error: Unauthorized (401): Unauthorized; run `carillon login`\n"
    )


def test_an_error_page_is_shown_in_one_safe_line(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/status", b"<h1>\x1b[2Jgone</h1>", status=500)

    assert signed_in("status").stderr == (
        "Error: Internal Server Error (500): <h1>\\x1b[2Jgone</h1>\n"
    )


@pytest.mark.parametrize("content", [b"<html></html>", b"[1]", b""])
def test_an_answer_that_is_no_object_is_unexpected(
    signed_in: Run, api: FakeApi, content: bytes
) -> None:
    api.answer("GET", "/status", content)

    result = signed_in("status")

    assert result.exit_code == 1
    assert "is this the API's address?" in result.stderr


def test_an_api_that_is_not_there_is_unreachable(run: Run) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

        result = run("--api-url", url, "--token", "t", "jobs", "list", "--json")

    assert result.exit_code == 7
    assert json.loads(result.stderr)["title"] == "The API cannot be reached"


def test_help_documents_the_exit_codes(run: Run) -> None:
    lines = [line.strip() for line in run("--help").stdout.splitlines()]

    start = lines.index("Exit codes:")
    assert [line[:1] for line in lines[start + 1 : start + 9]] == list("01234567")


def test_the_command_says_what_it_is(signed_in: Run, api: FakeApi) -> None:
    signed_in("status")

    assert api.requests[0].headers["user-agent"] == "carillon-cli"


def test_version(run: Run) -> None:
    result = run("--version")

    assert result.exit_code == 0
    assert result.stdout.startswith("carillon ")
