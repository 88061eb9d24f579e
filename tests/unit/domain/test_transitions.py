"""The table of run states and the diagram in the docs agree."""

import re
from pathlib import Path

from carillon.domain.run import TRANSITIONS, RunStatus

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "running.md"


def test_the_diagram_shows_the_table() -> None:
    (diagram,) = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", DOCUMENT.read_text(), re.S)
    arrows = re.findall(r"^\s*(\S+) --> ([^\s:]+)", diagram, re.M)
    drawn = {(before, after) for before, after in arrows if "[*]" not in (before, after)}
    table = {(str(before), str(after)) for before in TRANSITIONS for after in TRANSITIONS[before]}
    assert drawn == table
    ends = {before for before, after in arrows if after == "[*]"}
    assert ends == {str(status) for status in RunStatus if not TRANSITIONS[status]}
