"""What the simulation prints: figures, violations, and the trace of a shrunk one."""

from carillon.audit.evidence import Violation
from tests.simulation.worlds.runner import Figures, run
from tests.simulation.worlds.scenario_parts import Chunks
from tests.simulation.worlds.shrinking import Shrunk
from tests.simulation.worlds.tracing import told_of


def figures_text(figures: Figures) -> str:
    """One figure a line; no time of the machine, so that a replay prints the same."""
    rows = [
        ("seeds", figures.seeds),
        ("virtual minutes", figures.virtual_minutes),
        ("occurrences", figures.occurrences),
        ("deliveries", figures.deliveries),
        ("requests", figures.requests),
        ("requests acknowledged", figures.acknowledged.total()),
        *((f"  {what}", count) for what, count in sorted(figures.acknowledged.items())),
        ("faults", figures.faults.total()),
        *((f"  {fault.value}", count) for fault, count in sorted(figures.faults.items())),
    ]
    return "\n".join(f"{name:24}{count}" for name, count in rows)


def command(arguments: str, wanted: Chunks | None = None) -> str:
    """The line that simulates this, with chunks as wanted."""
    return f"make simulate {arguments}" + (f" CHUNKS={wanted.value}" if wanted else "")


def violation_text(seed: int, violation: Violation, wanted: Chunks | None = None) -> str:
    """On one line, with how to see it again."""
    text = violation.text.strip().replace("\n", "\n    ")
    again = command(f"SEED={seed}", wanted)
    return f"{violation.invariant} broken by seed {seed} ({again}): {text}"


def shrunk_text(shrunk: Shrunk, wanted: Chunks | None = None) -> str:
    """The least that breaks the promise, and what of its trace concerns that."""
    scenario, lines = shrunk.scenario, list[str]()
    run(scenario, only=frozenset(shrunk.strikes), trace=lines.append)
    parts = [
        violation_text(scenario.seed, shrunk.violation, wanted),
        f"  shrunk by {shrunk.reruns} runs: {scenario.minutes} minutes, {scenario.options}",
        *(f"  job {job.name}: {job.body}" for job in scenario.jobs),
        *(f"  request {each.name} after {each.after_us / 1e6:.6f} s {each.body}"
          for each in scenario.requests if each.what != "create"),
        *(f"  no ticks {_span(span)}" for span in scenario.ticks_down),
        *(f"  no executors {_span(span)}" for span in scenario.executors_down),
        *(f"  fault {strike.fault.value} at {strike.where}" for strike in shrunk.strikes),
        *(f"    {line}" for line in told_of(shrunk.violation, scenario, lines)),
    ]  # fmt: skip
    return "\n".join(parts)


def _span(span: tuple[object, object]) -> str:
    return f"from {span[0]} until {span[1]}"
