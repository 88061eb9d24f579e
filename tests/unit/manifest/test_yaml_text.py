"""Manifests' YAML: what is text stays text, and what is written is read back."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from carillon.errors import InvalidFieldError
from carillon.manifest.yaml_text import document_of, line_of, text_of


def test_yaml_leaves_to_the_api_what_is_text_there() -> None:
    found = document_of(
        "start: 2026-12-01T09:00:00Z\nday: 2026-12-24\ntime: 9:30\noff: yes\non: no\n"
        "zero: 007\nnone: ~\nempty:\nflag: true\nnumber: -17\nrate: 0.25\nsmall: 1e-3\n"
    )

    assert found == {
        "start": "2026-12-01T09:00:00Z",
        "day": "2026-12-24",
        "time": "9:30",
        "off": "yes",
        "on": "no",
        "zero": "007",
        "none": None,
        "empty": None,
        "flag": True,
        "number": -17,
        "rate": 0.25,
        "small": 0.001,
    }


def test_yaml_has_anchors_and_merges() -> None:
    found = document_of("a: &base {x: 1, y: 2}\nb:\n  <<: *base\n  y: 3\n")

    assert found == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}}


def test_json_is_yaml() -> None:
    assert document_of('[{"a": [1, "2026-12-01"]}]') == [{"a": [1, "2026-12-01"]}]
    assert document_of("{a: [1, b]}") == {"a": [1, "b"]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2\n", "line 2: the key 'a' appears twice"),
        ('{"a": 1,\n"a": 2}', "line 2: the key 'a' appears twice"),
        ("1: a\n", "line 1: a key that is not text"),
        ("jobs:\n  - [unclosed\n", "line 3"),
        ("a: !!python/object/apply:os.system [ls]\n", "line 1"),
        ("a: *nowhere\n", "line 1"),
        ("a: 1\nb: !!timestamp 2026-12-01\n", "line 2: could not determine"),
        ("a: !!binary aGk=\n", "line 1: could not determine"),
        ("a: 1\nb: &x {c: [1, *x]}\n", "line 2: *x stands within what it names"),
        ("a: 1\nb: 1e999\n", "line 2: 1e999 is no number"),
    ],
)
def test_bad_yaml_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(InvalidFieldError, match="is not YAML") as caught:
        document_of(text)
    assert told in caught.value.message


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_json_has_no_such_number(number: str) -> None:
    with pytest.raises(InvalidFieldError, match=f"is not JSON: {number} is no number"):
        document_of(f'{{"a": [{number}]}}')


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n\t"jobs": {\n\t\t"sync": {}\n\t}\n}', 3),
        ('{"jobs": {"sync": "\x7f"}}', None),
        (f'{{"jobs": {{"sync": {"[" * 900}{"]" * 900}}}}}', None),
    ],
    ids=["tabs", "letters that YAML has not", "deep"],
)
def test_json_that_yaml_does_not_take_is_read_all_the_same(text: str, line: int | None) -> None:
    assert "sync" in document_of(text)["jobs"]
    assert line_of(text, ("jobs", "sync")) == line


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("jobs",), 2),
        (("jobs", "sync"), 4),
        (("jobs", "sync", "retry", "max_attempts"), 6),
        (("jobs", "sync", "retry", "factor"), 5),
        (("jobs", "report", "schedule"), 3),
        (("simulate",), 1),
    ],
)
def test_a_member_has_a_line(path: tuple[str, ...], line: int) -> None:
    text = (
        "manifest: a\njobs:\n  report: {schedule: x}\n  sync:\n    retry:\n      max_attempts: 1\n"
    )

    assert line_of(text, path) == line


def test_a_text_is_composed_once_for_all_lines_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    composed: list[str] = []
    compose = yaml.compose

    def counted(text: str, *others: Any) -> Any:
        composed.append(text)
        return compose(text, *others)

    monkeypatch.setattr(yaml, "compose", counted)
    text = "jobs:\n" + "".join(f"  faulty-{number}: {{name: x}}\n" for number in range(50))

    lines = [line_of(text, ("jobs", f"faulty-{number}", "name")) for number in range(50)]
    assert (lines, composed) == (list(range(2, 52)), [text])


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
    | st.from_regex(r"[-+]?[0-9:.eExo_]{1,8}", fullmatch=True)
    | st.sampled_from(["yes", "off", "~", "null", "2026-12-01", "09:30", "=", "<<", "1e3", ".5"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=12,
)


@given(JSON)
def test_every_document_is_read_back_as_it_was_written(document: object) -> None:
    assert document_of(text_of(document)) == document


@pytest.mark.parametrize("text", ["\x85", "a\u2028b", "\u2029 a", "a\nb\n", " \t"], ids=repr)
def test_blanks_and_breaks_of_lines_are_kept(text: str) -> None:
    assert document_of(text_of({text: text})) == {text: text}
