"""Requests that are sent again: which of them, after what, and how long later."""

from typing import Any

import httpx2
import pytest

from carillon.client import ApiError, Conflict, Machine, NotFound, QuotaExceeded, Unavailable
from carillon.client.session import MOST_REPETITIONS
from tests.unit.client.conftest import FakeClock, New, Script

LOST = httpx2.ReadTimeout("no answer")
JOB: dict[str, Any] = {"job_id": "j" * 26, "next_cursor": None, "items": []}


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_can_be_done_twice_is_sent_again(scripted: Any, script: Script, status: int) -> None:
    script.then(status).then(status).then(200, JOB)

    assert scripted.jobs["nightly"].get() == JOB
    assert [request.method for request in script.requests] == ["GET"] * 3


@pytest.mark.parametrize(
    "error",
    [
        LOST,
        httpx2.ConnectError("refused"),
        httpx2.RemoteProtocolError("cut"),
        httpx2.DecodingError("cut, and compressed"),
    ],
)
def test_so_it_is_after_a_lost_connection(scripted: Any, script: Script, error: Exception) -> None:
    script.fail(error).then(200, {"action": "none"})

    assert scripted.jobs.put("nightly", schedule="every 5m") == {"action": "none"}
    assert len(script.requests) == 2


def test_waits_double_and_have_full_jitter(scripted: Any, script: Script, clock: FakeClock) -> None:
    script.then(503)
    for jitter, waits in ((0.0, [0.0] * 5), (0.5, [0.1, 0.2, 0.4, 0.8, 1.6])):
        clock.waits.clear()
        clock.jitter = jitter
        with pytest.raises(Unavailable):
            scripted.status()
        assert clock.waits == pytest.approx(waits)


@pytest.mark.parametrize(
    ("asked", "seconds"), [("4", 4), ("3600", 10), (None, 1), ("tomorrow", 1), ("0", 0)]
)
def test_the_api_says_when_to_come_back(
    scripted: Any, script: Script, clock: FakeClock, asked: str | None, seconds: int
) -> None:
    script.then(429, **({} if asked is None else {"Retry_After": asked})).then(200, JOB)

    scripted.status()

    assert clock.waits == [seconds]


def test_a_refusal_for_now_is_asked_again_when_it_says(
    scripted: Any, script: Script, clock: FakeClock
) -> None:
    """A run that has just begun is cancelled once it has lasted for two seconds."""
    script.then(409, Retry_After="2").then(200, {"status": "cancelled"})

    assert scripted.runs.cancel("j" * 26 + "_20260301T120000Z_scheduled_0")["status"] == "cancelled"
    assert clock.waits == [2]


def test_any_other_conflict_is_not(scripted: Any, script: Script) -> None:
    script.then(409, {"title": "No", "status": 409, "detail": "it has ended"})

    with pytest.raises(Conflict):
        scripted.runs.cancel("j" * 26 + "_20260301T120000Z_scheduled_0")
    assert len(script.requests) == 1


def test_it_is_given_up_in_the_end(scripted: Any, script: Script) -> None:
    for answer, error in ((503, Unavailable), (429, QuotaExceeded)):
        script.answers.clear()
        script.requests.clear()
        script.then(answer, {"title": "Not now", "status": answer, "detail": "busy"})
        with pytest.raises(error, match="Not now: busy") as caught:
            scripted.status()
        assert caught.value.status == answer
        assert len(script.requests) == 1 + MOST_REPETITIONS


def test_an_api_that_is_not_there_is_unavailable(scripted: Any, script: Script) -> None:
    script.fail(httpx2.ConnectError("refused"))

    with pytest.raises(Unavailable, match=r"cannot be reached: https://api\.example: refused"):
        scripted.status()


def test_a_post_has_a_key_of_its_own_and_keeps_it(scripted: Any, script: Script) -> None:
    script.fail(LOST).then(503).then(201, JOB)

    scripted.jobs.create(name="a", schedule="every 5m", target={"type": "task", "name": "echo"})

    assert [one.headers["idempotency-key"] for one in script.requests] == ["key-1"] * 3


def test_the_callers_key_goes_over_it_even_an_empty_one(scripted: Any, script: Script) -> None:
    script.then(202, JOB)
    for key in ("mine", ""):
        scripted.jobs["j" * 26].run(idempotency_key=key)
        assert script.requests[-1].headers["idempotency-key"] == key


def test_an_error_has_the_key_to_repeat_with(scripted: Any, script: Script) -> None:
    script.fail(LOST)

    with pytest.raises(Unavailable) as caught:
        scripted.jobs["j" * 26].run()

    assert caught.value.idempotency_key == "key-1"


def test_so_it_has_where_no_token_is_to_be_had_and_where_another_server_answers(
    new_client: New, script: Script
) -> None:
    """A command says by it how to repeat."""
    with pytest.raises(Unavailable) as unavailable:
        new_client(Script().fail(LOST), Machine("c1", "s1")).jobs["j" * 26].run()
    with pytest.raises(ApiError, match="Unexpected") as unexpected:
        new_client(script.then(200, ["welcome"])).jobs["j" * 26].run(idempotency_key="mine")

    assert unavailable.value.idempotency_key == "key-1"
    assert unexpected.value.idempotency_key == "mine"


@pytest.mark.parametrize("failure", [503, LOST])
def test_what_may_be_done_already_is_not_sent_again(
    scripted: Any, script: Script, failure: int | Exception
) -> None:
    """Without a key, or under a condition that would not hold any more."""
    job = scripted.jobs["j" * 26]
    for act in (
        job.pause,
        lambda: job.change(grace="5m"),
        lambda: job.delete(revision=3),
        lambda: scripted.jobs.put("a", revision=3),
        lambda: scripted.calendars.put("a", only_new=True),
        lambda: scripted.request("PUT", "/calendars/a", headers={"if-match": '"3"'}),
    ):
        script.requests.clear()
        script.answers.clear()
        script.then(failure) if isinstance(failure, int) else script.fail(failure)
        with pytest.raises(Unavailable):
            act()
        assert len(script.requests) == 1


def test_the_spelling_of_a_request_does_not_matter(scripted: Any, script: Script) -> None:
    script.then(503).then(503).then(200, {})
    scripted.request("post", "/jobs", headers={"idempotency-key": "mine"})
    assert [request.headers["idempotency-key"] for request in script.requests] == ["mine"] * 3

    script.answers.clear()
    script.fail(LOST).then(200, {})
    scripted.request("get", "/status")
    assert len(script.requests) == 5


@pytest.mark.parametrize("failure", [429, httpx2.ConnectError("refused")])
def test_what_was_not_begun_is_always_sent_again(
    scripted: Any, script: Script, failure: int | Exception
) -> None:
    script.then(failure) if isinstance(failure, int) else script.fail(failure)
    script.then(200, JOB)

    scripted.jobs["j" * 26].pause()

    assert len(script.requests) == 2


def test_a_deletion_whose_answer_was_lost_has_been_done(scripted: Any, script: Script) -> None:
    script.fail(LOST).then(404)
    scripted.jobs["nightly"].delete()

    script.answers.clear()
    script.fail(LOST).then(404)
    assert scripted.request("DELETE", "/jobs/named/nightly") is None

    script.answers.clear()
    script.then(429).then(404)
    with pytest.raises(NotFound):
        scripted.jobs["nightly"].delete()


@pytest.mark.parametrize("status", [301, 400, 401, 404, 409, 500])
def test_other_answers_end_it(scripted: Any, script: Script, status: int) -> None:
    script.then(status)

    with pytest.raises(Exception, match=r"\w"):
        scripted.status()

    assert len(script.requests) == 1
