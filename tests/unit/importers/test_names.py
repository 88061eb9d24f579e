"""Names of jobs and tasks, made of what others call theirs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from carillon.domain.spec.job_spec import Name
from carillon.domain.spec.names import folded
from carillon.domain.targets import TaskTarget
from carillon.importers.names import JobNames, TaskNames

NAME: TypeAdapter[str] = TypeAdapter(Name)


@given(st.lists(st.text(max_size=200), max_size=6))
def test_every_text_becomes_a_name_of_its_own(texts: list[str]) -> None:
    names = JobNames()
    given_names = [names.take(text) for text in texts]

    for name in given_names:
        NAME.validate_python(name)
    assert len({folded(name) for name in given_names}) == len(texts)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("nightly", "nightly"),
        ("Nightly report", "Nightly report"),
        ("a/b\\c?#d", "a-b-c-d"),
        (" .hidden\n file ", "hidden file"),
        ("", "job"),
        ("0123456789abcdefghijklmnop", "0123456789abcdefghijklmnop-job"),
        ("x" * 200, "x" * 128),
    ],
)
def test_a_name_stays_what_it_is_where_it_may(wanted: str, name: str) -> None:
    assert JobNames().take(wanted) == name


def test_names_are_unique_whatever_their_case() -> None:
    names = JobNames()
    wanted = ["Report", "report", "REPORT", "x" * 128, "X" * 128]
    assert [names.take(each) for each in wanted] == [
        "Report", "report-2", "REPORT-3", "x" * 128, "X" * 126 + "-2",
    ]  # fmt: skip


@given(st.lists(st.tuples(st.text(max_size=150), st.text(max_size=3)), max_size=6))
def test_a_task_has_one_name_and_what_it_does(given_tasks: list[tuple[str, str]]) -> None:
    names = TaskNames()
    runs: dict[str, str] = {}
    for wanted, run in given_tasks:
        name = names.of(wanted, run)
        TaskTarget(name=name)
        assert runs.setdefault(name, run) == run


def test_the_same_thing_is_the_same_task() -> None:
    names = TaskNames()
    assert [names.of("proj.add", "add"), names.of("proj.add", "add")] == ["proj.add", "proj.add"]
    assert [names.of("a b", "x"), names.of("a-b!", "y"), names.of("a/b", "z")] == [
        "a_b", "a-b", "a_b_2",
    ]  # fmt: skip
    assert [names.of("3 times", "x"), names.of("…", "x")] == ["task_3_times", "task"]
