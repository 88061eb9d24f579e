"""The checker finds what is wrong with the messages of notifications."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from carillon.audit.evidence import JobVersion
from carillon.domain.activity.results import Result
from carillon.domain.notifying.notification import Told
from carillon.domain.notifying.window import Noted, Window
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.domain.spec.names import job_id_of
from tests.simulation.judging.checker_book import after
from tests.simulation.judging.checker_notices import delivered, told, true
from tests.simulation.judging.evidence import Delivery, Evidence, Recorded
from tests.simulation.judging.known import Known
from tests.simulation.worlds.scenario_notifications import NotificationPlan

_TOLD = NotificationPlan("o", "ops", (Told.RUN_DEAD, Told.RUN_RECOVERED)).row(after(0))
_FAILED_AT = 100


def _run(key: Any, status: RunStatus, second: int) -> Run:
    at = after(second)
    return Run(key, status, 1, 1, "", "", at, at + timedelta(days=1), finished_at=at)


def _failed() -> Run:
    key = RunKey("o", job_id_of("o", "import"), RunKind.SCHEDULED, after(_FAILED_AT))
    return _run(key, RunStatus.DEAD, _FAILED_AT)


def _first(run: Run) -> dict[str, Any]:
    return {"kind": "first", "event": {"type": "run.dead", "run_id": run.key.run_id}}


def _digest(from_second: int, until_second: int, count: int = 1) -> dict[str, Any]:
    return {
        "kind": "digest",
        "from": after(from_second).isoformat(),
        "until": after(until_second).isoformat(),
        "counts": {"run.dead": count},
        "jobs": [{"job_id": _failed().key.job_id, "job_name": "import", "count": count}],
        "recovered": [],
    }


def _recorded(at: int, put_at: int | None = None) -> Recorded:
    result = Result(_failed().key, RunStatus.DEAD, 1, after(_FAILED_AT), "import")
    return Recorded(after(at), after(at if put_at is None else put_at), result)


def _found(*sent: tuple[int, dict[str, Any]], **members: Any) -> list[str]:
    """Violations where these messages were decided at these seconds, and one run has failed."""
    failed, job = _failed(), _TOLD.as_job()
    rows = {
        second: _run(_TOLD.delivery(after(second), second), RunStatus.DEAD, second)
        for second, _ in sent
    }
    given: dict[str, Any] = {
        "versions": {job.job_id: [JobVersion(after(0), job)]},
        "runs": [failed, *rows.values()],
        "until": after(1000),
        "notifications": [_TOLD],
        "notices": {rows[second].key.run_id: body for second, body in sent},
        "recorded": [_recorded(_FAILED_AT + 1)],
        "settle": timedelta(seconds=30),
    }
    known = Known(Evidence(**{**given, **members}))
    return [each.text for rule in (delivered, told, true) for each in rule(known)]


def test_a_first_message_or_a_digest_tells_of_it() -> None:
    assert _found((100, _first(_failed()))) == []
    assert _found((200, _digest(90, 150))) == []


def test_nobody_told_of_it() -> None:
    (text,) = _found()
    assert "not told by ops" in text
    assert any("not told" in each for each in _found((200, _digest(102, 150, 0))))


def test_nobody_could_tell_of_it_or_it_was_recorded_late() -> None:
    assert _found(untold=[after(_FAILED_AT + 2)]) == []
    for late in ([_recorded(300)], [_recorded(101, 300)]):
        assert _found(recorded=late) != []
        assert _found(recorded=late, may_stand_still=True) == []


def test_what_two_executors_recorded_is_told_once() -> None:
    twice = [_recorded(101), _recorded(300)]
    assert _found((400, _digest(290, 350)), recorded=twice) == []
    assert len(_found(recorded=twice)) == 2


def test_messages_come_too_fast() -> None:
    (text,) = _found((100, _first(_failed())), (159, _digest(90, 150)))
    assert "comes 0:00:59 after" in text
    # Seed 9750001393: an executor had stood still, and told late of what was before the other.
    late = Delivery(_TOLD.delivery(after(100), 100).run_id, "", 1, after(230))
    told_late = _found((100, _first(_failed())), (159, _digest(90, 150)), deliveries=[late])
    assert told_late == []


def test_a_message_tells_of_what_has_not_happened() -> None:
    assert any("counts 2 run.dead, the feed has 1" in x for x in _found((200, _digest(90, 150, 2))))
    other = replace(_failed(), key=replace(_failed().key, redrive=1))
    assert any("which is None" in x for x in _found((100, _first(other))))
    works = {"job_id": _failed().key.job_id, "job_name": "import"}
    again = {**works, "failed_at": after(_FAILED_AT).isoformat()}
    texts = _found((200, {**_digest(90, 150), "recovered": [again]}))
    assert any("works again" in each for each in texts)


def test_a_delivery_that_ended_as_no_call_does() -> None:
    """One that is still to be tried again is judged as any run is. Seed 9976100363: its owner has
    one place for more runs than that."""
    skipped = _run(_TOLD.delivery(after(100), 1), RunStatus.SKIPPED, 100)
    assert any("is skipped" in each for each in _found(runs=[skipped]))
    retrying = replace(skipped, status=RunStatus.RETRYING, finished_at=None)
    assert not any("is retrying" in each for each in _found(runs=[retrying]))


def test_a_digest_that_was_made_after_the_end_may_have_yet_to_be_delivered() -> None:
    """Seed 6710000100: the window ended eleven minutes after what is judged."""
    window = Window(
        owner=_TOLD.owner,
        name=_TOLD.name,
        opened_at=after(90),
        until=after(2000),
        last_delivery=_TOLD.delivery(after(1100), 2).run_id,
        told_until=after(1090),
        quiet_until=after(1160),
        first=Noted(Told.RUN_DEAD, after(90), _failed().key.job_id, "import"),
        expires_at=after(9999),
    )

    def texts(window: Window, *sent: tuple[int, dict[str, Any]]) -> list[str]:
        return _found(*sent, windows={(_TOLD.owner, _TOLD.name): window})

    assert texts(window) == []
    assert len(texts(replace(window, told_until=after(900)))) == 1
