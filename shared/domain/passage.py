"""What a gate decides about a run."""

from dataclasses import dataclass

from shared.domain.decisions import Go, Skip, Wait
from shared.domain.gate import Gate


@dataclass(frozen=True, slots=True)
class Passage:
    """What becomes of the run, once `put`, if there is one, has been put over the gate."""

    outcome: Go | Skip | Wait
    put: Gate | None = None
