"""The jobs of APScheduler 3: those of a database, or of a scheduler in a module. Reads only.

A job store of APScheduler deletes what it cannot restore, so its rows are read without it; nothing
in them is executed, and no function of theirs is imported.
"""

import io
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from carillon.errors import InvalidFieldError, reason_of
from carillon.importers.apscheduler.jobs import entry_of
from carillon.importers.entries import Entry, Json
from carillon.importers.loading import library, object_of
from carillon.importers.stubs import Stubs

TABLE = "apscheduler_jobs"
_STATE = (
    "id",
    "name",
    "trigger",
    "executor",
    "args",
    "kwargs",
    "misfire_grace_time",
    "coalesce",
    "max_instances",
    "next_run_time",
)
_SAFE = {
    "builtins": {"bytearray", "complex", "dict", "frozenset", "list", "range", "set", "tuple"},
    "collections": {"OrderedDict", "deque"},
    "copyreg": {"_reconstructor"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "pytz": {"_UTC", "_p"},
    "uuid": {"UUID"},
    "zoneinfo": {"ZoneInfo"},
}
"""The classes and functions, by module, that do nothing but hold values."""
_TRIGGERS = "apscheduler.triggers."


def database_entries(url: str, table: str, stubs: Stubs) -> Iterator[Entry]:
    """An entry for each row of a SQLAlchemy job store; raises InvalidFieldError."""
    sqlalchemy = library("sqlalchemy", "source")
    library("apscheduler", "source")
    try:
        engine = sqlalchemy.create_engine(url)
        path = str(engine.url.database)
        # A file that is not there would be made.
        if engine.name == "sqlite" and not path.startswith("file:") and not Path(path).is_file():
            raise InvalidFieldError("source", f"{path} is no file")
        schema, _, name = table.rpartition(".")
        rows = _rows(engine, sqlalchemy.table(name, schema=schema or None), sqlalchemy)
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:
        message = f"{reason_of(error)} (of another kind of job store, name module:scheduler)"
        raise InvalidFieldError("source", message) from error
    if rows is None:
        raise InvalidFieldError("source", f"has no table {table}: name it by --table")
    return (_of_row(key, content, stubs) for key, content in rows)


def scheduler_entries(reference: str, stubs: Stubs) -> tuple[list[Entry], list[str]]:
    """The entries of a scheduler that a module has, not started, with remarks about job stores that
    cannot be read. Raises InvalidFieldError."""
    scheduler = object_of(reference, "source")
    if not hasattr(scheduler, "get_jobs"):
        message = f"{reference} is no scheduler of APScheduler 3: name module:scheduler, or a URL"
        raise InvalidFieldError("source", message)
    if getattr(scheduler, "running", False):
        message = f"{reference} runs once its module is imported: name one that is not started"
        raise InvalidFieldError("source", message)
    defaults = getattr(scheduler, "_job_defaults", {})
    jobs = scheduler.get_jobs()
    entries = {str(job.id): entry_of({**defaults, **_state_of(job)}, stubs) for job in jobs}
    remarks = []
    for alias, store in getattr(scheduler, "_jobstores", {}).items():
        if hasattr(store, "engine") and hasattr(store, "jobs_t"):
            rows = _rows(store.engine, store.jobs_t, library("sqlalchemy", "source"))
            for key, content in rows or ():
                # What the code adds replaces what is stored.
                if key not in entries:
                    entries[key] = _of_row(key, content, stubs)
        elif type(store).__name__ != "MemoryJobStore":
            remarks.append(f"The job store {alias}, a {type(store).__name__}, was not read.")
    return list(entries.values()), remarks


def _rows(engine: Any, table: Any, sqlalchemy: Any) -> list[tuple[str, bytes]] | None:
    """Ids and states; None where there is no such table."""
    columns = sqlalchemy.column("id"), sqlalchemy.column("job_state")
    query = sqlalchemy.select(*columns).select_from(table).order_by(columns[0])
    with engine.connect() as connection:
        if not sqlalchemy.inspect(connection).has_table(table.name, schema=table.schema):
            return None
        return [(str(key), bytes(content)) for key, content in connection.execute(query)]


def _of_row(key: str, content: bytes, stubs: Stubs) -> Entry:
    try:
        state = _Reader(io.BytesIO(content)).load()
        return entry_of(state, stubs)
    except Exception as error:
        return Entry.left_out(f"job {key}", "job_state", f"cannot be read: {reason_of(error)}")


def _state_of(job: Any) -> Json:
    """The state of a job that waits for its scheduler's start: it has not all of it yet."""
    state = {name: getattr(job, name) for name in _STATE if hasattr(job, name)}
    return {**state, "func": job.func_ref}


class _Foreign:
    """A value of a class that is not loaded: it stands for it in arguments."""

    def __new__(cls, *_: Any, **__: Any) -> "_Foreign":
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        """Nothing: the value is never used."""

    append = extend = __setitem__ = lambda *_: None


class _Reader(pickle.Unpickler):
    """Builds triggers and plain values, and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _zone_maker
        if module.startswith(_TRIGGERS) and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__.startswith(_TRIGGERS):
                return found
        if name in _SAFE.get(module, ()):
            return super().find_class(module, name)
        return type(f"{module}.{name}", (_Foreign,), {})


def _zone_maker(owner: Any, name: str) -> Any:
    """The one attribute that a pickle may ask for: how time zones restore themselves."""
    if (owner, name) != (ZoneInfo, "_unpickle"):
        raise pickle.UnpicklingError(f"{owner}.{name} is not called")
    return ZoneInfo._unpickle  # type: ignore[attr-defined]
