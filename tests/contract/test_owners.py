"""Owners whose names contain each other's, or parts of keys, share no row: persons and teams."""

from dataclasses import replace

from carillon.domain.run import Attention, DeadReason, RunError, RunStatus
from tests.contract.kit import Kit
from tests.contract.samples import (
    NOW,
    a_calendar,
    a_job,
    a_key,
    a_notification,
    a_record,
    a_run,
    job_id,
)
from tests.contract.test_activity import DAY, put
from tests.contract.test_changes import a_change
from tests.support.jobs import job_with


def owners_of_like_names(kit: Kit) -> list[str]:
    base = kit.new_owner()
    key = a_key(f"user/{base}")
    return [
        f"user/{base}",
        f"team/{base}",
        f"team/{base}-ops",
        f"user/{base}-ops",
        f"user/team/{base}",
        f"user/{base}#",
        f"user/{base}#{key.job_id}",
        f"user/{base}#feed#{NOW:%Y%m%d}",
        f"user/{base}#result",
        f"user/{base}#job",
        f"user/{base}%23job",
        f"user/{base}/calendar",
        f"user/~changes#{base}",
        f"user/dead#user/{base}",
        f"user/{base}~",
        f"USER/{base}",
    ]


def _put_all(kit: Kit, owner: str, mark: str) -> None:
    assert kit.jobs.create(job_with(a_job(owner), description=mark))
    run = a_run(
        a_key(owner),
        status=RunStatus.DEAD,
        reason=DeadReason.EXHAUSTED,
        error=RunError("http_503", "down"),
        finished_at=NOW,
        note=mark,
    )
    assert kit.runs.claim(run, None)
    kit.runs.put_result(run, mark)
    assert kit.calendars.put(a_calendar(owner, description=mark), None)
    assert kit.notifications.put(a_notification(owner, jobs=mark), None)
    assert kit.idempotency_records.put(a_record(owner, answer=mark), None)
    kit.changes.put(a_change(owner, key=job_id(), note=mark))
    put(kit, owner, 1)


def test_owners_of_like_names_share_nothing(kit: Kit) -> None:
    """Each has one of everything, and reads that and nothing else."""
    owners = owners_of_like_names(kit)
    for number, owner in enumerate(owners):
        _put_all(kit, owner, str(number))

    for number, owner in enumerate(owners):
        mine = str(number)
        (job,) = kit.jobs.list(owner, 100).items
        (summary,) = kit.jobs.summaries(owner, 100).items
        assert (job.owner, job.spec.description, summary.job_id) == (owner, mine, job.job_id)
        assert sum(kit.jobs.tally(owner).counts.values()) == 1
        (run,) = kit.runs.list(owner, a_key(owner).job_id, 100).items
        (dead,) = kit.runs.dead_letters(owner, 100).items
        assert run == dead
        assert (run.key.owner, run.note) == (owner, mine)
        assert kit.runs.count(owner, Attention.DEAD, 100) == 1
        assert kit.runs.get_result(run) == mine
        (calendar,) = kit.calendars.list(owner, 100).items
        (notification,) = kit.notifications.list(owner, 100).items
        assert (calendar.description, notification.jobs) == (mine, mine)
        record = kit.idempotency_records.get(owner, a_record(owner).key)
        assert record is not None
        assert record.answer == mine
        (change,) = kit.changes.of_owner(owner, 100).items
        assert (change.owner, change.note) == (owner, mine)
        assert kit.changes.of_subject(owner, change.subject, change.key, 100).items == (change,)
        (told,) = kit.activity.read(owner, DAY)
        assert told.owner == owner
        for other in owners:
            if other != owner:
                assert kit.jobs.get(other, job.job_id) is None
                assert kit.runs.get(replace(run.key, owner=other)) != run
