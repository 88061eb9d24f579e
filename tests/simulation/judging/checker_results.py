"""Results that are kept whole."""

from collections.abc import Iterator

from carillon.audit.evidence import Violation
from carillon.domain.run import one_line
from tests.simulation.judging.known import Known


def kept_whole(known: Known) -> Iterator[Violation]:
    """A run that says that its whole result is kept has it: that of its last attempt, whoever else
    has called its target."""
    for run in known.evidence.runs:
        if run.result_bytes is None:
            continue
        text = known.evidence.results.get(run.key)
        if text is None:
            yield Violation("result", run.key.job_id, f"{run.key.run_id} lacks its whole result")
        elif (len(text.encode()), one_line(text)) != (run.result_bytes, run.result):
            told = f"{run.key.run_id} begins with {run.result!r}, but is {text[:80]!r}"
            yield Violation("result", run.key.job_id, told)
