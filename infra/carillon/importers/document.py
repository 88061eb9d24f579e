"""The text of a manifest: YAML that its reader takes back equal, with the losses as comments."""

from collections.abc import Iterator

from carillon.importers.importing import Imported, Line
from carillon.importers.stubs import one_line
from carillon.manifest.yaml_text import text_of


def manifest_text(found: Imported) -> str:
    """The manifest; above each job stands where it comes from, and what it lost."""
    return "\n".join([*_head(found), *_jobs(found), *_left_out(found)]) + "\n"


def _head(found: Imported) -> Iterator[str]:
    yield from (f"# {one_line(remark)}" for remark in found.remarks)
    yield text_of({"manifest": found.manifest}).rstrip()
    yield "jobs:"


def _jobs(found: Imported) -> Iterator[str]:
    bodies = found.jobs
    for line in found.lines:
        if line.job is not None:
            yield from (f"  # {text}" for text in _told(line))
            text = text_of({line.job: bodies[line.job]})
            yield from (f"  {row}" for row in text.rstrip("\n").split("\n"))


def _left_out(found: Imported) -> Iterator[str]:
    for line in found.lines:
        if line.job is None:
            yield from (f"# {text}" for text in _told(line))


def _told(line: Line) -> Iterator[str]:
    yield one_line(line.entry.place) + ("" if line.job is not None else ", left out:")
    for note in line.entry.notes:
        yield f"  {one_line(note.field)}: {one_line(note.message)}"


def report_text(found: Imported) -> str:
    """The report for people: a paragraph for each entry, then what holds for all of them."""
    counts = {"entries": len(found.lines), "jobs": len(found.jobs), "left out": found.left_out}
    lines = [", ".join(f"{name} {count:,}" for name, count in counts.items())]
    for line in found.lines:
        became = f"job {line.job}" if line.job is not None else "LEFT OUT"
        lines += ["", f"{line.entry.place}: {became}"]
        lines += [f"  {note.field}: {note.message}" for note in line.entry.notes]
    if found.remarks:
        lines += ["", *found.remarks]
    return "\n".join(lines)
