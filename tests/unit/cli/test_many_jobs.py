"""`carillon jobs list|pause|resume|delete` by parent and tags."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.unit.cli.conftest import FakeApi, Run

ACTIONS = [
    ("pause", "POST", "/jobs/pause", "paused"),
    ("resume", "POST", "/jobs/resume", "resumed"),
    ("delete", "DELETE", "/jobs", "deleted"),
]
YES = {"delete": ["--yes"]}


def test_list_by_parent_and_tags(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/jobs", {"items": [{"job_id": "a"}], "next_cursor": "c1"})
    api.then("GET", "/jobs", {"items": [], "next_cursor": None})

    result = signed_in(
        "jobs", "list", "--parent", "channel-7", "--tag", "team=billing", "--tag", "area=e:u",
        "--all", "--json", "--name", "night", "--state", "paused", "--managed-by", "manifest/m",
    )  # fmt: skip

    assert json.loads(result.stdout) == [{"job_id": "a"}]
    chosen = {
        "parent": "channel-7", "tag": "team:billing,area:e:u", "limit": "100",
        "q": "night", "state": "paused", "managed_by": "manifest/m",
    }  # fmt: skip
    assert [request.query for request in api.requests] == [chosen, {**chosen, "cursor": "c1"}]


@pytest.mark.parametrize(("command", "method", "path", "done"), ACTIONS)
def test_many_are_changed_until_no_cursor_is_left(
    signed_in: Run, api: FakeApi, command: str, method: str, path: str, done: str
) -> None:
    api.answer(method, path, {"changed": 2, "next_cursor": "c1"})
    api.then(method, path, {"changed": 0, "next_cursor": "c2"})
    api.then(method, path, {"changed": 1, "next_cursor": None})

    result = signed_in("jobs", command, "--parent", "channel-7", *YES.get(command, ()))

    assert (result.exit_code, result.stdout) == (0, f"{done} 3 jobs\n")
    parent = {"parent": "channel-7"}
    assert [request.query for request in api.requests] == [
        parent,
        {**parent, "cursor": "c1"},
        {**parent, "cursor": "c2"},
    ]
    answer = signed_in("jobs", command, "--tag", "a=b", "--json", *YES.get(command, ())).stdout
    assert json.loads(answer) == {"changed": 1, "managed": 0}
    assert api.requests[-1].query == {"tag": "a:b"}


def test_on_a_terminal_it_shows_how_far_it_is(
    signed_in: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    @contextmanager
    def bar() -> Iterator[Callable[[str], None]]:
        yield told.append

    monkeypatch.setattr("carillon.cli.commands.jobs.progress_bar", bar)
    api.answer("DELETE", "/jobs", {"changed": 1200, "next_cursor": "c1"})
    api.then("DELETE", "/jobs", {"changed": 1, "next_cursor": None})

    assert signed_in("jobs", "delete", "--parent", "p", "--yes").stdout == "deleted 1,201 jobs\n"
    assert told == ["deleted 1,200 jobs so far", "deleted 1,201 jobs so far"]


def test_a_failure_in_between_tells_what_is_done(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", "/jobs/pause", {"changed": 2, "next_cursor": "c1"})
    api.then("POST", "/jobs/pause", {"message": "Service Unavailable"}, status=503)

    result = signed_in("jobs", "pause", "--parent", "channel-7")

    assert (result.exit_code, result.stdout) == (7, "")
    assert "2 were changed before that; repeat the same command" in result.stderr


@pytest.mark.parametrize(
    ("options", "typed", "exit_code"), [([], "n\n", 1), ([], "y\n", 0), (["--yes"], "", 0)]
)
def test_on_a_terminal_deleting_many_asks(
    signed_in: Run,
    api: FakeApi,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    typed: str,
    exit_code: int,
) -> None:
    api.answer("DELETE", "/jobs", {"changed": 1, "next_cursor": None})
    # The runner's stdin takes the place of this process's: the type answers for both.
    monkeypatch.setattr("carillon.cli.options.sys", _Terminal)

    result = signed_in("jobs", "delete", "--parent", "p", *options, stdin=typed)

    assert result.exit_code == exit_code
    assert ("Delete all jobs of parent p for good?" in result.stderr) == (not options)
    assert len(api.requests) == (exit_code == 0)


class _Stdin:
    @staticmethod
    def isatty() -> bool:
        return True


class _Terminal:
    """`sys` as a module sees it that asks whether somebody is there."""

    stdin = _Stdin
    stderr = sys.stderr
