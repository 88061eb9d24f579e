"""The rules that need rows only: for the tables of any deployment, and for every simulated one."""

from collections.abc import Callable, Iterator

from carillon.audit import outcomes, rows
from carillon.audit.evidence import Violation
from carillon.audit.known import Known

Rule = Callable[[Known], Iterator[Violation]]

ROW_RULES: tuple[Rule, ...] = (
    outcomes.lost,
    outcomes.unexpected,
    outcomes.passed_over,
    outcomes.unfinished,
    outcomes.broken_sequences,
    rows.succeeded_again,
    rows.impossible,
    rows.dead_without_reason,
    rows.unreasoned,
    rows.resolved_otherwise,
)
