"""Judges evidence by the promises of docs/reliability.md, without asking the code that made it: an
oracle of its own.

What rows alone show is judged by the rules of `carillon admin audit`, which are here, too.
"""

from collections.abc import Callable, Iterator

from carillon.audit.evidence import Violation
from carillon.audit.judging import ROW_RULES
from tests.simulation.judging import (
    checker_activity,
    checker_after,
    checker_calls,
    checker_causes,
    checker_completions,
    checker_ends,
    checker_gone,
    checker_history,
    checker_lanes,
    checker_late,
    checker_load,
    checker_notices,
    checker_owners,
    checker_pauses,
    checker_results,
    checker_rows,
    checker_skips,
    checker_stops,
    checker_told,
)
from tests.simulation.judging.evidence import Evidence
from tests.simulation.judging.known import Known

RULES: tuple[Callable[[Known], Iterator[Violation]], ...] = (
    *ROW_RULES,
    checker_causes.called_after_its_end,
    checker_causes.two_at_once,
    checker_causes.caught_up_on_nothing,
    checker_rows.left_over,
    checker_rows.forgotten,
    checker_calls.succeeded_twice,
    checker_calls.done_twice,
    checker_calls.not_held,
    checker_rows.unwitnessed,
    checker_calls.early,
    checker_calls.late,
    checker_rows.wrong_ways,
    checker_rows.unfenced,
    checker_calls.disobeyed,
    checker_calls.overlapping,
    checker_calls.too_many_attempts,
    checker_rows.miscounted,
    checker_rows.died_of_nothing,
    checker_skips.untrue,
    checker_late.ran_late,
    checker_late.late_in_chunk,
    checker_load.crowded,
    checker_load.granted_too_often,
    checker_load.started_too_often,
    checker_load.waits_by_no_rate,
    checker_load.out_of_turn,
    checker_load.in_proportion,
    checker_owners.held_to_permits,
    checker_owners.shared_out,
    checker_gone.goes_on,
    checker_gone.renamed,
    checker_gone.handed_over,
    checker_gone.under_its_owner,
    checker_pauses.resumed,
    checker_lanes.misled,
    checker_lanes.taken_back,
    checker_stops.stopped,
    checker_completions.reported,
    checker_completions.lapsing,
    checker_completions.crowded,
    checker_results.kept_whole,
    checker_told.called_back,
    checker_told.told_of,
    checker_told.watched,
    checker_after.followed,
    checker_activity.in_the_feed,
    checker_activity.summed,
    checker_history.untold,
    checker_notices.delivered,
    checker_notices.told,
    checker_notices.true,
    checker_ends.uncompleted,
    checker_ends.too_many_runs,
    checker_ends.failing_on,
    checker_ends.operations,
    checker_ends.answered_otherwise,
)


def violations(evidence: Evidence) -> list[Violation]:
    """What does not hold, rule by rule; empty when all does."""
    known = Known(evidence)
    return [found for rule in RULES for found in rule(known)]
