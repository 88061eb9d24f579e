"""`carillon admin spread`: moves the jobs to the segments that there are now."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from carillon.cli.commands.admin.all_jobs import work_off
from carillon.cli.commands.admin.stores import AdminOptions, open_with_zones

if TYPE_CHECKING:
    from carillon.reindexing.spreading import Moves

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Move nothing: count the jobs that would be moved.")
]


def spread(*, dry_run: DryRunOption = False, options: AdminOptions) -> None:
    """Move each job to the segment that its id has among the deployment's `segments`: after their
    number was raised, or lowered.

    Each move is a change of the job, with a new generation and revision: nothing is lost or run
    twice, whatever fires meanwhile. It may be interrupted and repeated; the next time moves what is
    left. Exit code 1 where a job cannot be read, or changed at every step.
    """
    from carillon.clock import SystemClock, SystemEntropy
    from carillon.reindexing.spreading import Spread

    settings, stores = open_with_zones(options)
    work = Spread(
        stores,
        SystemClock(),
        SystemEntropy(),
        settings.longest_delay_seconds,
        settings.segments,
        is_rehearsal=dry_run,
    )

    def lines(done: "Moves") -> list[str]:
        what = "to be moved" if dry_run else "moved"
        pairs = (
            f"from segment {before} to {after}: {count:,}"
            for (before, after), count in sorted(done.moved.items())
        )
        return [f"{done.jobs:,} jobs read, {done.moved.total():,} {what}", *pairs]

    def told(done: "Moves") -> dict[str, Any]:
        moves = [
            {"from": before, "to": after, "jobs": count}
            for (before, after), count in sorted(done.moved.items())
        ]
        return {"jobs": done.jobs, "moved": moves, "dry_run": dry_run, "left": done.left}

    work_off(work, lines, told, as_json=options.is_json)
