"""Scenarios as JSON: a world that was found keeps its file, whatever becomes of the generator."""

from pathlib import Path

from pydantic import TypeAdapter

from tests.simulation.worlds.scenario import Scenario, scenario_of
from tests.simulation.worlds.scenario_parts import Chunks

FOUND = Path(__file__).parent / "found"
"""The worlds that broke a promise once, each under its seed, and what was wanted besides."""

_SCENARIO = TypeAdapter(Scenario)


def dump(scenario: Scenario) -> str:
    """The scenario as JSON text: all of it, since defaults may change."""
    return _SCENARIO.dump_json(scenario, indent=1).decode() + "\n"


def load(text: str) -> Scenario:
    """The scenario that `dump` wrote; raises pydantic's ValidationError on anything else."""
    return _SCENARIO.validate_json(text)


def world_of(seed: int, wanted: Chunks | None = None) -> Scenario:
    """The world kept under this seed, else the one that is drawn from it; with chunks as `wanted`
    it is another one."""
    path = FOUND / f"{seed}{f'-{wanted.value}' if wanted else ''}.json"
    return load(path.read_text()) if path.exists() else scenario_of(seed, wanted)
