"""What a gate decides about a run."""

from dataclasses import dataclass

from shared.domain.decisions import Go, Skip, Wait
from shared.domain.gate import Gate


@dataclass(frozen=True, slots=True)
class Passage:
    """What becomes of the run, once `put`, if it is another than the gate, has been put over it."""

    outcome: Go | Skip | Wait
    put: Gate | None = None
