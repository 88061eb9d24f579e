"""What a gate decides about a run."""

from dataclasses import dataclass

from carillon.domain.admission.state import Gate
from carillon.domain.decisions import Go, Skip, Wait


@dataclass(frozen=True, slots=True)
class Passage:
    """What becomes of the run, once `put`, if it is another than the gate, has been put over it."""

    outcome: Go | Skip | Wait
    put: Gate | None = None
