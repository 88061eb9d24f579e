"""One hierarchy of errors, each with the problem of its answer."""

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from carillon.api.http.problems import Kind
from carillon.client import (
    ApiError,
    Conflict,
    Managed,
    NotAllowed,
    NotFound,
    QuotaExceeded,
    Refused,
    Unavailable,
)
from carillon.errors import CarillonError, ConfigurationError, InvalidFieldError
from carillon.tasks import Retry, UnknownTaskError
from tests.unit.client.conftest import Script

KINDS: dict[int, type[ApiError]] = {
    400: Refused,
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    405: ApiError,
    409: Conflict,
    410: NotFound,
    412: Conflict,
    413: Refused,
    415: Refused,
    422: Refused,
    428: Conflict,
    429: QuotaExceeded,
    500: ApiError,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


@pytest.mark.parametrize("status", sorted(KINDS))
def test_each_status_has_its_error(scripted: Any, script: Script, status: int) -> None:
    problem = {
        "type": "about:blank", "title": "No", "status": status, "detail": "why",
        "errors": [{"field": "schedule", "message": "is no schedule"}],
    }  # fmt: skip
    script.then(status, problem)

    with pytest.raises(CarillonError) as caught:
        scripted.status()

    error = caught.value
    assert type(error) is KINDS[status]
    assert isinstance(error, ApiError)
    assert (error.problem, error.status, str(error)) == (problem, status, "No: why")
    assert error.errors == problem["errors"]


def test_every_problem_of_the_api_has_a_status_that_is_known() -> None:
    assert {kind.status for kind in Kind} <= KINDS.keys()


@pytest.mark.parametrize(
    ("slug", "kind"), [("managed", Managed), ("quota-exceeded", QuotaExceeded)]
)
def test_some_kinds_of_conflict_have_their_own(
    scripted: Any, script: Script, slug: str, kind: type[ApiError]
) -> None:
    script.then(409, {"type": f"urn:carillon:problem:{slug}", "title": "No", "status": 409})

    with pytest.raises(kind):
        scripted.jobs["nightly"].delete()


def test_the_gateways_own_answer_becomes_a_problem(scripted: Any, script: Script) -> None:
    script.then(401, {"message": "Unauthorized"})

    with pytest.raises(NotAllowed) as caught:
        scripted.status()

    assert (caught.value.title, caught.value.detail) == ("Unauthorized", "Unauthorized")


@pytest.mark.parametrize("body", ["<html>", [1], None])
def test_an_answer_that_is_no_object_is_unexpected(
    scripted: Any, script: Script, body: Any
) -> None:
    script.then(200, body)

    with pytest.raises(ApiError, match="is this the API's address"):
        scripted.status()


@pytest.mark.parametrize("payload", [float("inf"), "\ud800", {1, 2}])
def test_what_json_has_no_form_for_is_the_callers_fault(
    scripted: Any, script: Script, payload: Any
) -> None:
    with pytest.raises(InvalidFieldError, match="cannot be sent"):
        scripted.jobs.put("nightly", payload=payload)

    assert script.requests == []


def test_what_another_server_calls_its_status_does_not_matter(
    scripted: Any, script: Script
) -> None:
    script.then(401, {"title": "Denied", "status": "error", "type": ["auth"]})
    with pytest.raises(NotAllowed) as caught:
        scripted.status()
    assert (caught.value.status, str(caught.value)) == (401, "Denied")


def test_names_that_no_path_can_carry_are_refused_here(scripted: Any, script: Script) -> None:
    refused: tuple[Callable[[], Any], ...] = (
        lambda: scripted.jobs[""].get(),
        lambda: scripted.jobs["id:.."].pause(),
        lambda: scripted.jobs["\udcff"].get(),
        lambda: scripted.runs.get("no-underscore"),
        lambda: scripted.runs.get("j_\udcff"),
        lambda: scripted.calendars.get("."),
        lambda: scripted.operations.get(""),
        lambda: scripted.dead_letters.discard(".."),
    )
    for act in refused:
        with pytest.raises(InvalidFieldError):
            act()
    assert script.requests == []


def test_what_is_in_a_path_is_one_part_of_it(scripted: Any, script: Script) -> None:
    script.then(200, {})

    scripted.jobs["a/b?c"].get()

    assert script.requests[0].url.raw_path == b"/jobs/named/a%2Fb%3Fc"
    assert json.loads(script.requests[0].content or b"null") is None


@pytest.mark.parametrize(
    "error",
    [
        Conflict({"title": "No", "status": 409, "detail": "why"}, "key-1"),
        InvalidFieldError("schedule", "is no schedule"),
        ConfigurationError("CARILLON_TOKEN", "is not set"),
        UnknownTaskError("nightly", ("echo",)),
        Retry(after=5, reason="no lock"),
    ],
)
def test_an_error_passes_from_one_process_to_another(error: Exception) -> None:
    """A pool whose worker raises what cannot be read back waits for ever, or breaks."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
