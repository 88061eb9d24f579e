"""Each commit has seeds of its own, and so has an archive without any."""

import subprocess
from pathlib import Path

import pytest

from tests.simulation.worlds.fresh import first_of_commit


def written(root: Path, text: str) -> Path:
    """A tree with one file of code that says `text`."""
    (root / "shared").mkdir(exist_ok=True)
    (root / "shared" / "code.py").write_text(text)
    return root


def committed(root: Path, text: str) -> Path:
    name = ("-c", "user.name=n", "-c", "user.email=e@example.com")
    for command in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*name, "commit", "--quiet", "--allow-empty", "--message", text],
    ):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    return root


def test_another_content_is_another_first_where_there_is_no_git(tmp_path: Path) -> None:
    one = first_of_commit(written(tmp_path, "1"))
    assert first_of_commit(tmp_path) == one >= 1_000_000_000
    assert first_of_commit(written(tmp_path, "2")) != one


def test_another_commit_is_another_first(tmp_path: Path) -> None:
    one = first_of_commit(committed(written(tmp_path, "1"), "one"))
    assert first_of_commit(written(tmp_path, "2")) == one
    assert first_of_commit(committed(tmp_path, "two")) != one


def test_without_the_git_command_the_content_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = first_of_commit(written(tmp_path, "1"))
    committed(tmp_path, "one")
    assert first_of_commit(tmp_path) != plain
    monkeypatch.setenv("PATH", "")
    assert first_of_commit(tmp_path) == plain
