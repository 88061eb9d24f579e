"""Stories of a job and of one that runs after it: kept, and broken."""

from dataclasses import replace

import pytest

from carillon.audit.evidence import JobVersion
from carillon.domain.execution.successors import link_of, linked
from carillon.domain.job import Generation, Job
from carillon.domain.run import Completion, Run, RunKey, RunKind, RunStatus
from carillon.domain.spec.after import After, Outcome
from carillon.domain.spec.names import job_id_of
from carillon.schedules import NEVER
from tests.simulation.judging.checker_book import (
    GENERATION_ID,
    NOON,
    OWNER,
    Book,
    after,
    found,
    key_of,
    only,
)
from tests.simulation.judging.evidence import BY_CHUNK, Evidence, RunWrite
from tests.support.jobs import make_job

FOLLOWER_ID = job_id_of(OWNER, "follower")
AFTER_FIRST = key_of(10).successor(FOLLOWER_ID)


def follower(when: Outcome = Outcome.SUCCEEDED, within: int | None = None) -> Job:
    return make_job(
        NEVER,
        owner=OWNER,
        job_id=FOLLOWER_ID,
        name="follower",
        segment=0,
        generation=Generation(GENERATION_ID, NOON),
        created_at=NOON,
        updated_at=NOON,
        after=After("book", when, within),
    )


def book() -> Book:
    """Its only occurrence of the story, and the run that follows it, both at noon and 10 s."""
    made = Book()
    made.ran(key_of(10))
    return made


def follows(made: Book, key: RunKey = AFTER_FIRST) -> Run:
    row = made.claimed(key, after(10.5), effective_at=after(10))
    made.called(row, after(10.6), job_id=FOLLOWER_ID)
    return made.finished(row, after(10.8))


def evidence(made: Book, *rows: Job, since: float = 0) -> Evidence:
    """The versions of the follower come a second apart."""
    versions = [JobVersion(after(since + number), row) for number, row in enumerate(rows)]
    every = {made.job.job_id: made.versions, **({FOLLOWER_ID: versions} if rows else {})}
    return made.evidence(19, versions=every)


def test_an_end_is_followed_once() -> None:
    made = book()
    follows(made)
    assert found(evidence(made, follower())) == []


def test_an_end_that_nothing_follows() -> None:
    only(evidence(book(), follower()), "I1", "nothing of")


@pytest.mark.parametrize(
    "rows",
    [
        (),
        (follower(Outcome.FAILED),),
        (replace(follower(), revision=2).deleted(after(12), after(9999)),),
    ],
    ids=["none there", "another end", "a deleted one"],
)
def test_an_end_that_nothing_need_follow(rows: tuple[Job, ...]) -> None:
    assert found(evidence(book(), *rows)) == []


def test_an_end_that_began_before_there_was_a_job_need_not_be_followed() -> None:
    assert found(evidence(book(), follower(), since=10.1)) == []


def in_chunk() -> Book:
    """The run is claimed in its chunk at 10 s; its call lasts, and gets a row after 2 s."""
    made = Book()
    row = made.claimed(key_of(10), after(12.1))
    made.writes.append(RunWrite(after(10.1), f"{row.key.run_id}/1", BY_CHUNK[0], None, row, 1))
    made.called(row, after(10.1), ended_at=after(12.4), chunk_claimed_at=after(10))
    made.finished(row, after(12.5))
    return made


def test_a_chunk_whose_jobs_were_read_before_there_was_a_job_need_not_be_followed() -> None:
    assert found(evidence(in_chunk(), follower(), since=11)) == []
    only(evidence(in_chunk(), follower(), since=9), "I1", "nothing of")


def silent() -> Book:
    """The run is open from 10.3 s on, and ends at 14 s, since nobody has reported."""
    target = {"type": "webhook", "url": "https://example.com/hook", "completion": {"within": "1m"}}
    made = Book(target=target)
    row = made.claimed(key_of(10), after(10))
    terms = Completion("", after(70), 3)
    row = made.written(replace(row, completion=terms), after(10.1), f"{row.key.run_id}/1", "finish")
    made.called(row, after(10.1), is_success=False)
    is_open = replace(terms, is_open=True)
    row = replace(row, token=2, completion=is_open, lease_until=after(13), updated_at=after(10.3))
    made.written(row, after(10.3), f"{row.key.run_id}/1", "claim")
    ended = replace(row, token=3, status=RunStatus.TIMED_OUT, reason="exhausted", attempt=3)
    ended = replace(ended, lease_until=None, updated_at=after(14), finished_at=after(14))
    made.written(ended, after(14), "check", "claim")
    return made


def test_an_end_by_silence_that_was_read_before_there_was_a_job_need_not_be_followed() -> None:
    def told(since: float) -> list[str]:
        story = replace(evidence(silent(), follower(Outcome.FAILED), since=since), until=after(25))
        return [text for _, text in found(story) if "nothing of" in text]

    assert told(13.9) == []
    assert len(told(10.2)) == 1


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (key_of(10, redrive=1).successor(FOLLOWER_ID), "which starts none"),
        (replace(AFTER_FIRST, request_id=f"{AFTER_FIRST.request_id}x"), "which starts none"),
        (key_of(10, RunKind.CALLBACK, request_id="x").successor(FOLLOWER_ID), "which starts none"),
    ],
    ids=["no run", "another run than the one there is", "a callback"],
)
def test_a_run_that_follows_nothing(key: RunKey, words: str) -> None:
    made = book()
    follows(made)
    follows(made, key)
    only(evidence(made, follower()), "after", words)


def test_a_run_after_an_end_that_its_job_does_not_want() -> None:
    made = book()
    follows(made)
    only(evidence(made, follower(Outcome.FAILED)), "after", "never ran after")


@pytest.mark.parametrize("is_called", [True, False])
def test_a_claim_that_was_cancelled_while_it_looked_follows_nothing(is_called: bool) -> None:
    """Seed 6710000173: a change of the job had died behind its link."""
    made = book()
    row = made.claimed(AFTER_FIRST, after(11), effective_at=after(10))
    if is_called:
        made.called(row, after(11.1), job_id=FOLLOWER_ID)
    cancelled = replace(row, status=RunStatus.CANCELLED, token=2, lease_until=None)
    made.written(cancelled, after(11.3), "stop", "claim")
    told = [text for _, text in found(evidence(made, follower(Outcome.FAILED)))]
    assert any("never ran after" in text for text in told) is is_called


def test_a_run_after_one_that_had_ended_long_before_the_job_was_there() -> None:
    made = book()
    row = made.claimed(AFTER_FIRST, after(150), effective_at=after(10))
    made.called(row, after(150.1), job_id=FOLLOWER_ID)
    made.finished(row, after(150.2))
    told = [text for _, text in found(evidence(made, follower(), since=140))]
    assert any("before its job ran after that" in text for text in told)

    # Seed 9977020634: a creation had died, and left its link.
    link = link_of(follower())
    assert link is not None
    made.becomes(5, linked(made.job, link))
    told = [text for _, text in found(evidence(made, follower(), since=140))]
    assert not any("before its job ran after that" in text for text in told)


def test_within_skips_what_ended_too_late_and_nothing_else() -> None:
    late, made = Book(), book()
    late.ran(key_of(10), 15)
    for one, reason in ((late, "misfire"), (made, "misfire")):
        row = one.claimed(AFTER_FIRST, after(16), effective_at=after(15))
        one.finished(row, after(16.1), RunStatus.SKIPPED, reason=reason)
    said = [text for name, text in found(evidence(late, follower(within=3))) if name == "skip"]
    assert said == []
    only(evidence(made, follower(within=3)), "skip", "ended in time")
    ran = Book()
    ran.ran(key_of(10), 15)
    row = ran.claimed(AFTER_FIRST, after(16), effective_at=after(15))
    ran.called(row, after(16.1), job_id=FOLLOWER_ID)
    ran.finished(row, after(16.2))
    assert any("ended too late" in text for _, text in found(evidence(ran, follower(within=3))))
