"""What is done with wall times that the clocks skip (a gap) or show twice (a fold)."""

from dataclasses import dataclass
from enum import StrEnum

from carillon.errors import InvalidFieldError


class Gap(StrEnum):
    """What becomes of a wall time that the clocks skip."""

    RUN_AFTER = "run_after"
    """It fires at the transition; several that are skipped together are one occurrence."""
    SKIP = "skip"


class Fold(StrEnum):
    """At which pass a wall time fires that the clocks show twice."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class DstRule:
    """A job's own rule; None leaves that half to the default of its schedule's dialect."""

    gap: Gap | None = None
    fold: Fold | None = None

    @property
    def text(self) -> str:
        """Its compact form: `run_after/both`, `skip/`, or "" when all is left to the default."""
        if self.gap is None and self.fold is None:
            return ""
        return f"{self.gap or ''}/{self.fold or ''}"

    @classmethod
    def from_text(cls, text: str) -> "DstRule":
        """The rule of a compact form; raises InvalidFieldError on `dst`."""
        gap, _, fold = text.partition("/")
        try:
            return cls(Gap(gap) if gap else None, Fold(fold) if fold else None)
        except ValueError as error:
            raise InvalidFieldError("dst", f"{text[:40]!r} is no rule: {error}") from error


DEFAULT_DST = DstRule()
