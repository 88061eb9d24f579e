"""What tests of importers share: a fixed time, the way to the simulation, and who lost what."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from carillon.cli.commands.simulation.live import fast_forward
from carillon.importers.document import manifest_text
from carillon.importers.entries import Entry
from carillon.importers.importing import Imported, imported
from carillon.manifest.manifest import Manifest, ManifestFile
from carillon.simulation.run import Plan, Simulation
from carillon.simulation.workload import Workload

NOW = datetime(2027, 3, 11, 12, tzinfo=UTC)
Json = dict[str, Any]


def made_of(entries: Iterable[Entry], remarks: Iterable[str] = ()) -> Imported:
    return imported("imported", entries, NOW, list(remarks))


def read_back(found: Imported) -> Manifest:
    """The manifest as its reader takes it from the text."""
    return Manifest.of_files([ManifestFile("jobs.yaml", manifest_text(found))])


def losses(found: Imported) -> dict[str, list[str]]:
    """The fields of the notes, by entry."""
    return {line.entry.place: [note.field for note in line.entry.notes] for line in found.lines}


def told(found: Imported, place: str, field: str) -> str:
    """The one message of an entry about a field."""
    (line,) = (line for line in found.lines if line.entry.place == place)
    (message,) = (note.message for note in line.entry.notes if note.field == field)
    return message


def fire_times(manifest: Manifest, begin: str, end: str, most: int) -> dict[str, list[str]]:
    """The first fire times in [begin, end) of each job, by the simulation."""
    workload = Workload.of(manifest)
    plan = Plan(instant(begin), instant(end), most_first=most)
    simulation = Simulation(workload, plan)
    fast_forward(simulation, lambda: True)
    summary = simulation.summary()
    assert not summary["crashes"]
    return {line["name"]: line["first"] for line in summary["jobs"]}


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
