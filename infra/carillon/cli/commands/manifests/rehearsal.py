"""The effect of a manifest on a span of time, by simulation of the jobs before and after it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from carillon.domain.spec.names import folded
from carillon.domain.spec.together import former_of
from carillon.manifest.manifest import Manifest, ManifestRefusedError

if TYPE_CHECKING:
    from carillon.simulation.run import Plan

Summary = Mapping[str, Any]


def compared(before: Manifest, after: Manifest, *, prune: bool) -> tuple[Manifest, Manifest]:
    """Both as they are to be simulated: a job that is there keeps its state, and its target answers
    before the change as after it. Without `prune` those that `after` does not have stay."""
    left = {folded(name): name for name in before.jobs}
    jobs, profiles = dict(after.jobs), {}
    for name, members in after.jobs.items():
        former = left.pop(folded(name), None) or left.pop(former_of(members) or "", None)
        if former is not None:
            jobs[name] = {**members, "initial_state": before.jobs[former]["initial_state"]}
            profiles[former] = after.simulate.get(name, {})
    if not prune:
        jobs |= {name: before.jobs[name] for name in left.values()}
    return replace(before, simulate=profiles), replace(after, jobs=jobs)


def rehearsed(before: Manifest, after: Manifest, begin: datetime, until: datetime) -> str:
    """A line that compares fires, the busiest minute and the cost."""
    # Imported here: no other command needs the scheduler's own code.
    from carillon.simulation.run import Plan

    plan = Plan(begin, until)
    old, new = _summary(before, plan), _summary(after, plan)
    peak = f", at {new['peaks']['minutes'][0]['at']}" if new["peaks"]["minutes"] else ""
    return (
        f"fires {_fires(old)} -> {_fires(new)}; "
        f"busiest minute {_peak(old):,} -> {_peak(new):,}{peak}; "
        f"cost {_dollars(old)} -> {_dollars(new)}"
    )


def _summary(manifest: Manifest, plan: "Plan") -> Summary:
    from carillon.cli.commands.simulation.live import fast_forward
    from carillon.simulation.run import Simulation
    from carillon.simulation.workload import Workload

    while manifest.jobs:
        try:
            simulation = Simulation(Workload.of(manifest), plan)
        except ManifestRefusedError as error:
            # A one-shot that is over, above all: whatever cannot be simulated fires no more.
            refused = {path[1] for path, _ in error.errors if path[0] == "jobs" and len(path) > 1}
            left = {name: job for name, job in manifest.jobs.items() if name not in refused}
            if len(left) == len(manifest.jobs):
                raise
            manifest = replace(manifest, jobs=left)
            continue
        fast_forward(simulation, lambda: True)
        return simulation.summary()
    return {"fires": 0, "peaks": {"minutes": []}, "usage": {"dollars_total": 0}}


def _fires(summary: Summary) -> str:
    return f"{summary['fires']:,}"


def _peak(summary: Summary) -> int:
    minutes = summary["peaks"]["minutes"]
    return int(minutes[0]["starts"]) if minutes else 0


def _dollars(summary: Summary) -> str:
    return f"${summary['usage']['dollars_total']:.2f}"
