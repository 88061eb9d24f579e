"""Payload templates: what is put in, what stays, and what is refused."""

import json
import tracemalloc
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.domain.templates import (
    DEEPEST,
    MOST_PLACEHOLDERS,
    MOST_PROBLEMS,
    NAMES,
    PATH_LIMIT_CHARACTERS,
    TemplateValues,
    check_template,
    render_payload,
)

VALUES = TemplateValues(
    fire_at=datetime(2026, 11, 21, 12, 0, 17, tzinfo=UTC),
    effective_at=datetime(2026, 11, 21, 12, 3, 0, tzinfo=UTC),
    run_id="abc_20261121T120017Z_scheduled_0",
    attempt=2,
    job_id="abc",
    job_name='The "daily" {{run_id}}',
    tags={"team": "blue", "a.b": "x"},
)


def render(value: Any, values: TemplateValues = VALUES) -> Any:
    return json.loads(render_payload(json.dumps(value, separators=(",", ":")), values))


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ("{{fire_at}}", "2026-11-21T12:00:17Z"),
        ("{{effective_at}}", "2026-11-21T12:03:00Z"),
        ("{{ run_id }}", "abc_20261121T120017Z_scheduled_0"),
        ("{{job_id}}", "abc"),
        ("{{job_name}}", 'The "daily" {{run_id}}'),
        ("{{attempt}}", 2),
        ("{{tags}}", {"team": "blue", "a.b": "x"}),
        ("{{tags.team}}", "blue"),
        ("{{tags.a.b}}", "x"),
        ("{{tags.none}}", None),
        ("attempt {{attempt}} of {{tags.none}}{{tags.team}}!", "attempt 2 of blue!"),
        ("tags: {{tags}}", 'tags: {"team":"blue","a.b":"x"}'),
        (" {{attempt}}", " 2"),
        ("{{{{attempt}}", "{{attempt}}"),
        ("{{{{", "{{"),
        ("{{{{{{attempt}}", "{{2"),
        ("{{{attempt}}}", "{2}"),
        ("}} {", "}} {"),
        ("{{unknown}}", "{{unknown}}"),
    ],
)
def test_strings(template: str, rendered: Any) -> None:
    assert render(template) == rendered
    assert render({"a": [template, 1]}) == {"a": [rendered, 1]}


def test_names_of_members_stay() -> None:
    assert render({"{{attempt}}": "{{attempt}}"}) == {"{{attempt}}": 2}


@pytest.mark.parametrize("name", [*NAMES, "tags.any"])
def test_every_name_is_let_through_and_put_in(name: str) -> None:
    assert check_template({"a": f"{{{{{name}}}}}"}) == []
    assert render(f"<{{{{{name}}}}}>") != f"<{{{{{name}}}}}>"


@pytest.mark.parametrize(
    ("payload", "path", "told"),
    [
        ({"to": ["x", {"at": "{{fire_time}}"}]}, "payload.to[1].at", "has {{fire_time}}, which is"),
        ("{{ tags. }}", "payload", "none of {{fire_at}}"),
        ("{{tags", "payload", "never closed"),
        ("{{fire_at}} {{", "payload", "never closed"),
        ("{{}}", "payload", "has {{}}"),
        ({"{{attempt}}": 1}, "payload.{{attempt}}", "in its name"),
        (["{{attempt}}"] * (MOST_PLACEHOLDERS + 1), "payload", "more than 100 placeholders"),
        ("{{__class__}}", "payload", "has {{__class__}}"),
        ("{{value_of}}", "payload", "has {{value_of}}"),
    ],
)
def test_what_cannot_be_a_template_is_told_with_its_place(
    payload: Any, path: str, told: str
) -> None:
    ((place, message),) = check_template(payload)
    assert place == path
    assert told in message


def test_problems_come_in_the_order_of_the_payload() -> None:
    problems = check_template({"a": "{{x}}", "b": ["{{y}}", [1, "{{z}}"]], "{{c": {}, "d": "{{"})
    assert [path for path, _ in problems] == [
        "payload.a",
        "payload.b[0]",
        "payload.b[1][1]",
        "payload.{{c",
        "payload.d",
    ]


def test_nesting_beyond_reason_is_refused() -> None:
    value: Any = "{{attempt}}"
    for _ in range(DEEPEST):
        value = [value]
    assert check_template(value) == []
    assert render(value) != value
    for _ in range(5000):
        value = [value]
    ((path, message),) = check_template(value)
    assert path == "payload"
    assert "nested" in message


def test_a_long_text_takes_no_time_and_many_mistakes_are_cut() -> None:
    began = perf_counter()
    for text in ("{{" + " " * 60_000, "{" * 60_000, "{{ " * 20_000, "{{" + " x " * 20_000 + "}}"):
        assert check_template(text) != [] or text == "{" * 60_000
        render(text)
    assert perf_counter() - began < 2
    assert len(check_template(["{{x}}"] * 10_000)) == MOST_PROBLEMS


def test_checking_takes_no_more_memory_and_tells_no_more_than_is_of_use() -> None:
    name = "k" * 50_000
    for payload in ({name: [1] * 2_000}, {name: ["{{"] * 60}, "{{x}}" * 20_000):
        tracemalloc.start()
        try:
            problems = check_template(payload)
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak_bytes < 1_000_000
        assert len(problems) <= MOST_PROBLEMS
        assert all(len(path) <= PATH_LIMIT_CHARACTERS for path, _ in problems)
    ((path, _),) = check_template({name: "{{"})
    assert path.startswith("payload.kkk")
    assert path.endswith("k…")


TEXTS = st.text() | st.sampled_from(
    ["{{fire_at}}", "{{tags}}", "{{", "}}", "{{{{", '"', "\\", "{{job_name}}", "{{tags.a}}", "{"]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@given(JSON, TEXTS, TEXTS, TEXTS)
def test_json_stays_json_whatever_the_values_hold(
    payload: Any, job_name: str, key: str, tag: str
) -> None:
    values = TemplateValues(
        VALUES.fire_at, VALUES.effective_at, "run", 1, "job", job_name, {key: tag, "a": tag}
    )
    assert agree(payload, json.loads(render_payload(compact(payload), values)))


@given(JSON)
def test_a_payload_without_placeholders_stays_as_it_is(payload: Any) -> None:
    text = compact(payload).replace("{{", "{ {")
    assert render_payload(text, VALUES) == text


def agree(payload: Any, rendered: Any) -> bool:
    """Whether only strings, which may become anything, are not what they were."""
    if isinstance(payload, str):
        return "{{" in payload or rendered == payload
    if isinstance(payload, list):
        return len(payload) == len(rendered) and all(map(agree, payload, rendered))
    if isinstance(payload, dict):
        return payload.keys() == rendered.keys() and all(
            agree(payload[name], rendered[name]) for name in payload
        )
    return bool(payload == rendered)
