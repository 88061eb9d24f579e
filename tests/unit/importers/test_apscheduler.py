"""Jobs of APScheduler 3: the library itself makes and stores them here."""

import os
import pickle
import sqlite3
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from apscheduler.jobstores.sqlalchemy import (  # type: ignore[import-untyped]
    SQLAlchemyJobStore,
)
from apscheduler.schedulers.background import (  # type: ignore[import-untyped]
    BackgroundScheduler,
)
from apscheduler.triggers.calendarinterval import (  # type: ignore[import-untyped]
    CalendarIntervalTrigger,
)
from apscheduler.triggers.combining import (  # type: ignore[import-untyped]
    AndTrigger,
    OrTrigger,
)
from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]
from apscheduler.triggers.date import DateTrigger  # type: ignore[import-untyped]
from apscheduler.triggers.interval import IntervalTrigger  # type: ignore[import-untyped]

from carillon.errors import InvalidFieldError
from carillon.importers.apscheduler.jobs import entry_of
from carillon.importers.apscheduler.stores import TABLE, database_entries, scheduler_entries
from carillon.importers.importing import Imported
from carillon.importers.stubs import Stubs
from carillon.schedules import parse_schedule
from tests.unit.importers.kit import NOW, fire_times, losses, made_of, read_back, told

RIGA = ZoneInfo("Europe/Riga")
BEGIN = datetime(2027, 4, 1, 10, 0, 0, tzinfo=UTC)


class Customer:
    """An argument that only the user's own program can make."""


def call(*args: Any, **kwargs: Any) -> None:
    """What jobs run."""


def fill(scheduler: Any) -> None:
    """Jobs of all kinds."""
    weekdays = CronTrigger(hour=6, minute=30, day_of_week="mon-fri", timezone=RIGA)
    add = scheduler.add_job
    add(call, weekdays, id="weekdays", args=(1, "a"), kwargs={"deep": True}, coalesce=True,
        misfire_grace_time=3600)  # fmt: skip
    every = IntervalTrigger(hours=6, start_date=BEGIN, timezone=UTC, jitter=30)
    add(call, every, id="interval", misfire_grace_time=None, coalesce=False, max_instances=3)
    add(call, DateTrigger(BEGIN), id="once", args=(Customer(),), misfire_grace_time=None)
    add(call, OrTrigger([CronTrigger(hour=1, timezone=UTC), CronTrigger(hour=2, timezone=UTC)]),
        id="either")  # fmt: skip
    add(call, AndTrigger([weekdays, weekdays]), id="both")
    add(call, "interval", seconds=90, id="0123456789abcdef0123456789abcdef", name="Quick one",
        timezone=UTC, executor="default")  # fmt: skip


def made(*jobs: dict[str, Any], **stubs: Any) -> Imported:
    """Of states, as they are pickled."""
    usual = {"func": "proj.jobs:call", "args": (), "kwargs": {}, "id": "a"}
    return made_of(entry_of({**usual, **job}, Stubs(**stubs)) for job in jobs)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The database of a scheduler that has run."""
    address = f"sqlite:///{tmp_path}/jobs.sqlite"
    store = SQLAlchemyJobStore(url=address)
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone=UTC)
    fill(scheduler)
    scheduler.start(paused=True)
    scheduler.pause_job("either")
    scheduler.shutdown()
    return address


def of_database(url: str, table: str = TABLE) -> Imported:
    return made_of(database_entries(url, table, Stubs()))


def test_jobs_of_a_database(url: str) -> None:
    jobs = of_database(url).jobs

    assert jobs["weekdays"] == {
        "schedule": "30 6 * * 1-5",
        "timezone": "Europe/Riga",
        "target": {"type": "task", "name": "tests.unit.importers.test_apscheduler.call"},
        "payload": {"args": [1, "a"], "kwargs": {"deep": True}},
        "catch_up": "skip",
        "grace": "1h",
        "overlap": "skip",
        "retry": {"max_attempts": 1},
    }
    assert jobs["interval"] == {
        "schedule": "every 6h",
        # Six hours before its first run.
        "start_at": "2027-04-01T04:00:00Z",
        "target": jobs["weekdays"]["target"],
        "catch_up": "all",
        "retry": {"max_attempts": 1},
        "window": "30s",
    }
    assert jobs["either"]["schedule"] == ["0 1 * * *", "0 2 * * *"]
    assert jobs["either"]["initial_state"] == "paused"
    assert jobs["Quick one"]["schedule"] == "every 1m30s"
    assert sorted(jobs) == ["Quick one", "either", "interval", "once", "weekdays"]


def test_every_loss_is_listed(url: str) -> None:
    found = of_database(url)

    assert losses(found) == {
        "job weekdays": ["coalesce", "target"],
        "job interval": ["jitter", "max_instances", "target"],
        "job once": ["target", "args"],
        "job either": ["misfire_grace_time", "coalesce", "target"],
        "job both": ["trigger"],
        "job 0123456789abcdef0123456789abcdef": ["misfire_grace_time", "coalesce", "target"],
    }
    assert "Customer is not JSON" in told(found, "job once", "args")
    assert "AndTrigger" in told(found, "job both", "trigger")


def test_jobs_fire_as_apscheduler_runs_them(url: str) -> None:
    found = fire_times(read_back(of_database(url)), "2027-04-01T00:00:00", "2027-04-03T00:00:00", 3)

    # 1 April 2027 is a Thursday; Riga has summer time.
    assert found["weekdays"] == ["2027-04-01T03:30:00Z", "2027-04-02T03:30:00Z"]
    assert found["interval"] == [
        "2027-04-01T10:00:00Z", "2027-04-01T16:00:00Z", "2027-04-01T22:00:00Z",
    ]  # fmt: skip
    assert found["once"] == ["2027-04-01T10:00:00Z"]


@pytest.mark.parametrize("moment", [BEGIN, BEGIN + timedelta(microseconds=1)], ids=str)
def test_an_interval_counts_from_the_next_run_that_was_named(tmp_path: Path, moment: Any) -> None:
    """`next_run_time=datetime.now()` is how a first run at once is asked for."""
    scheduler = BackgroundScheduler(timezone=UTC)
    scheduler.add_jobstore("sqlalchemy", url=f"sqlite:///{tmp_path}/jobs.sqlite")
    start = BEGIN - timedelta(minutes=7)
    every = IntervalTrigger(minutes=10, start_date=start, timezone=UTC)
    scheduler.add_job(call, every, id="named", next_run_time=moment)
    scheduler.start(paused=True)
    scheduler.shutdown()

    job = of_database(f"sqlite:///{tmp_path}/jobs.sqlite").jobs["named"]

    following = every.get_next_fire_time(moment, moment).replace(microsecond=0)
    late = timedelta(seconds=1 if moment.microsecond else 0)  # parts of a second are rounded up
    ours = parse_schedule(job["schedule"], start_at=_moment(job["start_at"]))
    assert ours.next(moment - timedelta(minutes=1)) == BEGIN + late
    assert ours.next(moment + late) == following + late


def test_a_database_is_only_read(url: str) -> None:
    """APScheduler itself would delete what it cannot restore, and would create a table."""
    path = Path(url.removeprefix("sqlite:///"))
    state = {"id": "gone", "func": "nowhere.at_all:call", "trigger": CronTrigger(timezone=UTC)}
    with sqlite3.connect(path) as connection:
        for key, content in (("gone", pickle.dumps(state)), ("torn", b"\x80\x04no")):
            connection.execute(f"INSERT INTO {TABLE} VALUES (?, 0, ?)", (key, content))
    before = path.read_bytes()

    found = of_database(url)

    assert path.read_bytes() == before
    assert found.jobs["gone"]["target"]["name"] == "nowhere.at_all.call"
    assert losses(found)["job torn"] == ["job_state"]
    with pytest.raises(InvalidFieldError, match="no table other: name it by --table"):
        database_entries(url, "other", Stubs())
    assert path.read_bytes() == before


class _Deed:
    """Unpickled, it does something."""

    def __init__(self, *call: Any) -> None:
        self._call = call

    def __reduce__(self) -> Any:
        return self._call[0], self._call[1:]


@pytest.mark.parametrize(
    "deed",
    [
        lambda path: _Deed(os.mkdir, str(path)),
        lambda path: _Deed(getattr, Path(path), "mkdir"),
        lambda path: _Deed(exec, f"import os; os.mkdir({str(path)!r})"),
    ],
)
def test_nothing_in_a_row_is_executed(url: str, tmp_path: Path, deed: Any) -> None:
    proof = tmp_path / "proof"
    state = {"id": "evil", "func": "a:b", "trigger": CronTrigger(timezone=UTC), "args": ()}
    content = pickle.dumps({**state, "args": (deed(proof),)})
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute(f"INSERT INTO {TABLE} VALUES ('evil', 0, ?)", (content,))

    assert "job evil" in losses(of_database(url))
    assert not proof.exists()


def test_attributes_of_classes_are_no_way_out(url: str) -> None:
    deed = _Deed(getattr, dict, "__subclasses__")
    state = {"id": "evil", "func": "a:b", "trigger": CronTrigger(timezone=UTC), "args": (deed,)}
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        content = pickle.dumps(state)
        connection.execute(f"INSERT INTO {TABLE} VALUES ('evil', 0, ?)", (content,))

    assert "__subclasses__ is not called" in told(of_database(url), "job evil", "job_state")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://localhost/0", "name module:scheduler"),
        ("sqlite:////nowhere/at/all.db", "/nowhere/at/all.db is no file"),
        ("sqlite://", "None is no file"),
        ("sqlite:///file:/nowhere.db?mode=ro&uri=true", "OperationalError"),
    ],
)
def test_databases_that_cannot_be_read(url: str, said: str) -> None:
    with pytest.raises(InvalidFieldError, match=said):
        database_entries(url, TABLE, Stubs())


def test_a_mistyped_file_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match=r"jobs\.sqlite is no file"):
        database_entries(f"sqlite:///{tmp_path}/jobs.sqlite", TABLE, Stubs())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["sqlalchemy", "apscheduler"])
def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(InvalidFieldError, match=f"needs {missing}, .* beside carillon"):
        database_entries("sqlite://", TABLE, Stubs())


def test_jobs_of_a_scheduler_that_is_not_started(url: str, monkeypatch: Any) -> None:
    """What the code adds is there before what is stored, under the same id too."""
    store = SQLAlchemyJobStore(url=url)
    defaults = {"coalesce": True, "misfire_grace_time": None, "max_instances": 2}
    scheduler = BackgroundScheduler(
        jobstores={"default": store, "other": _Elsewhere()}, timezone=UTC, job_defaults=defaults
    )
    scheduler.add_job(call, CronTrigger(hour=9, timezone=UTC), id="weekdays")
    scheduler.add_job(lambda: None, "interval", hours=1, id="nameless")
    monkeypatch.setattr(sys.modules[__name__], "scheduler", scheduler, raising=False)

    entries, remarks = scheduler_entries(f"{__name__}:scheduler", Stubs())
    found = made_of(entries)

    assert found.jobs["weekdays"]["schedule"] == "0 9 * * *"
    assert found.jobs["weekdays"]["catch_up"] == "latest"
    assert "func" in losses(found)["job nameless"]
    assert "interval" in found.jobs
    assert remarks == ["The job store other, a _Elsewhere, was not read."]


class _Elsewhere(SQLAlchemyJobStore):  # type: ignore[misc]
    """A job store of another kind."""

    def __init__(self) -> None:
        pass


@pytest.mark.parametrize("name", ["Customer", "NOW"])
def test_what_is_no_scheduler_is_refused(name: str) -> None:
    with pytest.raises(InvalidFieldError, match="is no scheduler"):
        scheduler_entries(f"{__name__}:{name}", Stubs())


CRONS: list[dict[str, Any]] = [
    {"hour": "*/3"},
    {"minute": "5-50/15", "hour": "8-18"},
    {"day": "last", "hour": 12},
    {"day": "2nd fri", "hour": 7, "minute": 45},
    {"day": "last sun,1st mon", "month": "1-6"},
    {"day": "1,15,last"},
    {"day": "1-7", "day_of_week": "mon"},
    {"day": "*/2", "day_of_week": "sat,sun"},
    {"month": "jan-mar", "day_of_week": 6},
    {"second": "*/20", "minute": 0, "hour": 3},
    {"year": "2027-2028", "month": 2, "day": 29},
    {"year": 2028, "month": 2},
]


@pytest.mark.parametrize("fields", CRONS, ids=str)
def test_a_cron_trigger_fires_when_apscheduler_says(fields: dict[str, Any]) -> None:
    trigger = CronTrigger(**fields, timezone=UTC)
    (body,) = made({"trigger": trigger}).jobs.values()
    ours = parse_schedule(
        body["schedule"],
        start_at=_moment(body.get("start_at")),
        end_at=_moment(body.get("end_at")),
        except_=tuple(body.get("except", ())),
    )

    before, at = None, NOW
    for _ in range(40):
        expected = trigger.get_next_fire_time(before, at)
        assert ours.next(at - timedelta(seconds=1)) == expected
        if expected is None:
            break
        before, at = expected, expected + timedelta(seconds=1)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        (CronTrigger(week="1-10", timezone=UTC), "weeks of the year"),
        (CronTrigger(year="2027,2029", timezone=UTC), "years that are no range"),
        (CronTrigger(year="2028", start_date=BEGIN, timezone=UTC), "years beside"),
        (CalendarIntervalTrigger(months=1, timezone=UTC), "CalendarIntervalTrigger"),
        (IntervalTrigger(seconds=1.5, timezone=UTC), "whole seconds"),
        (
            OrTrigger([CronTrigger(hour=1, timezone=UTC), CronTrigger(hour=1, timezone=RIGA)]),
            "make each a job",
        ),
        (DateTrigger(date(2027, 1, 1), timezone=UTC), "is past"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_triggers_without_an_equal_are_left_out(trigger: Any, said: str) -> None:
    found = made({"trigger": trigger})

    assert found.jobs == {}
    assert any(said in note.message for note in found.lines[0].entry.notes)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"misfire_grace_time": None, "coalesce": True}, ("latest", None)),
        ({"misfire_grace_time": None, "coalesce": False}, ("all", None)),
        ({"misfire_grace_time": 1, "coalesce": True}, ("skip", "1m")),
        ({"misfire_grace_time": 7200, "coalesce": False}, ("skip", "2h")),
        ({}, ("skip", "1m")),
    ],
)
def test_lateness(state: dict[str, Any], expected: tuple[str, str | None]) -> None:
    (body,) = made({"trigger": CronTrigger(timezone=UTC), **state}).jobs.values()
    assert (body["catch_up"], body.get("grace")) == expected


def test_arguments_in_values_that_json_does_not_have() -> None:
    found = made({"trigger": CronTrigger(timezone=UTC), "args": (Decimal(1),), "kwargs": {1: 2}})

    assert "payload" not in found.jobs["a"]
    assert losses(found)["job a"][-2:] == ["args", "kwargs"]
