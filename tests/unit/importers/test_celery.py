"""Beat schedules of Celery: the library itself makes them here."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery  # type: ignore[import-untyped]
from celery.schedules import crontab, schedule, solar  # type: ignore[import-untyped]

from carillon.errors import InvalidFieldError
from carillon.importers.celery import celery_entries, schedule_of
from carillon.importers.importing import Imported
from carillon.importers.loading import object_of
from carillon.importers.stubs import Stubs
from carillon.schedules import parse_schedule
from tests.unit.importers.kit import fire_times, losses, made_of, read_back, told

SUNSET = solar.__new__(solar)  # its own way needs a library of astronomy
SUNSET.event, SUNSET.lat, SUNSET.lon = "sunset", -37.8, 144.9
BEAT: dict[str, dict[str, Any]] = {
    "every-monday": {
        "task": "proj.tasks.add",
        "schedule": crontab(minute=30, hour=7, day_of_week=1),
        "args": (16, 16),
        "kwargs": {"verbose": True},
    },
    "every 30 s": {"task": "proj.tasks.ping", "schedule": 30.0, "args": ()},
    "often": {"task": "proj.tasks.ping", "schedule": timedelta(minutes=5)},
    "object": {"task": "proj.tasks.ping", "schedule": schedule(90), "relative": True},
    "sun": {"task": "proj.tasks.wake", "schedule": SUNSET},
    "tiny": {"task": "proj.tasks.ping", "schedule": 0.5},
    "queued": {
        "task": "proj.tasks.add",
        "schedule": crontab(minute="*/15"),
        "args": (datetime(2027, 1, 1, tzinfo=UTC),),
        "options": {"queue": "fast", "expires": 15},
    },
    "no-task": {"schedule": 60},
    "odd": {"task": "a", "schedule": "daily"},
}
FRIDAY_13 = crontab(minute=0, hour=0, day_of_week="fri", day_of_month="13")


def made(found: Any, **stubs: Any) -> Imported:
    return made_of(celery_entries(schedule_of(found, "proj:app"), Stubs(**stubs)))


@pytest.fixture
def app() -> Iterator[Celery]:
    app = Celery("proj", set_as_current=False)
    app.conf.timezone = "Europe/Riga"
    app.conf.beat_schedule = BEAT
    yield app
    app.close()


def test_entries_of_an_app(app: Celery) -> None:
    jobs = made(app).jobs

    assert jobs["every-monday"] == {
        "schedule": "30 7 * * 1",
        "timezone": "Europe/Riga",
        "target": {"type": "task", "name": "proj.tasks.add"},
        "payload": {"args": [16, 16], "kwargs": {"verbose": True}},
        "retry": {"max_attempts": 1},
    }
    assert [jobs[name]["schedule"] for name in ("every 30 s", "often", "object", "queued")] == [
        "every 30s", "every 5m", "every 1m30s", "*/15 * * * *",
    ]  # fmt: skip
    assert "payload" not in jobs["often"]


def test_every_loss_is_listed(app: Celery) -> None:
    found = made(app)

    assert losses(found) == {
        "beat_schedule['every-monday']": ["target"],
        "beat_schedule['every 30 s']": ["schedule", "target"],
        "beat_schedule['often']": ["schedule", "target"],
        "beat_schedule['object']": ["schedule", "target"],
        "beat_schedule['sun']": ["schedule"],
        "beat_schedule['tiny']": ["schedule"],
        "beat_schedule['queued']": ["target", "args", "options.queue", "options.expires"],
        "beat_schedule['no-task']": ["task"],
        "beat_schedule['odd']": ["schedule"],
    }
    assert "sunset" in told(found, "beat_schedule['sun']", "schedule")
    assert found.left_out == 4


def test_jobs_fire_when_beat_sends(app: Celery) -> None:
    """29 March 2027 is a Monday; clocks in Riga changed the day before. In winter it is 05:30Z."""
    app.conf.beat_schedule = {"a": BEAT["every-monday"], "b": {"task": "t", "schedule": FRIDAY_13}}
    manifest = read_back(made(app))

    spring = fire_times(manifest, "2027-03-28T00:00:00", "2027-03-30T00:00:00", 4)
    assert spring == {"a": ["2027-03-29T04:30:00Z"], "b": []}
    # The 13th, if it is a Friday: both fields must match, as they do in August.
    summer = fire_times(manifest, "2027-08-11T00:00:00", "2027-08-14T00:00:00", 4)
    assert summer == {"a": [], "b": ["2027-08-12T21:00:00Z"]}


@pytest.mark.parametrize(
    "given",
    [
        crontab(),
        crontab(minute="*/7", hour="8-18/2"),
        crontab(minute=0, hour="22-3"),
        crontab(minute="0,30", hour=12, day_of_month="1-7", day_of_week="mon"),
        crontab(minute=5, hour=0, day_of_month="*/2", day_of_week="sat,sun"),
        crontab(minute=0, hour=0, month_of_year="*/3", day_of_month=31),
        FRIDAY_13,
    ],
    ids=repr,
)
def test_a_crontab_is_due_when_celery_says(given: crontab) -> None:
    """Celery's own answer of when it is due next, again and again."""
    found = made({"a": {"task": "t", "schedule": given}}).jobs["a"]
    ours = parse_schedule(found["schedule"], except_=tuple(found.get("except", ())))
    at = datetime(2027, 1, 1, 0, 0, tzinfo=UTC)
    given.app = Celery("utc", set_as_current=False, timezone="UTC")
    for _ in range(30):
        given.nowfun = lambda now=at: now
        expected = at + given.remaining_estimate(at)
        assert ours.next(at) == expected
        at = expected


def test_settings_in_a_module_and_their_old_names() -> None:
    settings = SimpleNamespace(
        CELERYBEAT_SCHEDULE={"a": {"task": "t", "schedule": crontab(0, 3)}},
        CELERY_TIMEZONE="Asia/Tokyo",
    )
    assert made(settings).jobs["a"]["timezone"] == "Asia/Tokyo"
    settings.timezone = timezone  # of datetime: what a module has imported is no setting
    assert made(settings).jobs["a"]["timezone"] == "Asia/Tokyo"


def test_tasks_added_once_the_app_is_complete(app: Celery) -> None:
    app.conf.beat_schedule = {}

    @app.on_after_finalize.connect  # type: ignore[untyped-decorator]
    def add(sender: Celery, **_: Any) -> None:
        sender.add_periodic_task(crontab(0, 4), sender.signature("late"), name="late")

    assert made(app).jobs["late"]["schedule"] == "0 4 * * *"


def test_calls_of_a_webhook_carry_the_arguments(app: Celery) -> None:
    job = made(app, webhook="https://example.com/run").jobs["every-monday"]
    assert job["payload"] == {
        "task": "proj.tasks.add", "args": [16, 16], "kwargs": {"verbose": True},
    }  # fmt: skip


@pytest.mark.parametrize("found", [object(), {}, SimpleNamespace(beat_schedule={})])
def test_what_has_no_schedule_is_refused(found: object) -> None:
    with pytest.raises(InvalidFieldError, match="proj:app has no beat_schedule"):
        schedule_of(found, "proj:app")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the command is called in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_objects_are_found_in_modules_of_this_folder(here: Path) -> None:
    (here / "of_mine_1.py").write_text("class inner:\n    beat = {'a': 1}\n")

    assert object_of("of_mine_1:inner.beat", "conf") == {"a": 1}
    assert object_of("of_mine_1", "conf").__name__ == "of_mine_1"


@pytest.mark.parametrize(
    ("content", "reference", "said"),
    [
        ("", "of_mine_2:app", "of_mine_2 has no app"),
        ("1 / 0", "of_mine_3:app", "ZeroDivisionError"),
        ("import celery_is_missing.app", "of_mine_4:app", "install celery_is_missing beside"),
        ("", "of_nobody:app", "No module named 'of_nobody'$"),
    ],
)
def test_objects_that_are_not_there(here: Path, content: str, reference: str, said: str) -> None:
    (here / f"{reference.partition(':')[0]}.py").write_text(content)
    if "nobody" in reference:
        (here / "of_nobody.py").unlink()

    with pytest.raises(InvalidFieldError, match=said):
        object_of(reference, "conf")
