"""What is promised about lanes: a job is served in its own, and its mark takes no change back."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from carillon.audit.evidence import Violation
from carillon.domain.changes.handing_over import is_in_hand, settled
from carillon.domain.job import Job
from tests.simulation.judging.known import Known


def misled(known: Known) -> Iterator[Violation]:
    """No target is called for a message that came from another lane than that of its job, as its
    row was read for it."""
    for each in known.evidence.deliveries:
        if each.lane is not each.job_lane and None not in (each.lane, each.job_lane):
            text = f"{each.run_id} ran in lane {each.lane}; its job was served in {each.job_lane}"
            yield Violation("lane", each.job_id, text)


def taken_back(known: Known) -> Iterator[Violation]:
    """Whoever writes a job's row under the revision that it has changes nothing but the mark, or
    links to other jobs, or notes that its new owner has it, and nobody lowers that; who changes
    more leaves the links: else something that was acknowledged would be gone."""
    for job_id, versions in known.evidence.versions.items():
        for before, after in pairwise(version.job for version in versions):
            if after.revision < before.revision or _differs_unsaid(before, after):
                text = f"revision {before.revision} was overwritten by another {after.revision}"
                yield Violation("change", job_id, text)
            if after.revision != before.revision and after.successors != before.successors:
                text = f"revision {after.revision} took links from {before.revision}, or gave some"
                yield Violation("change", job_id, text)


def _differs_unsaid(before: Job, after: Job) -> bool:
    as_before = replace(after, slow=before.slow, successors=before.successors)
    if is_in_hand(before) and settled(before).handed_to == after.handed_to:
        as_before = replace(as_before, handed_to=before.handed_to)
    return before.revision == after.revision and as_before != before
