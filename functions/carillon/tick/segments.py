"""Which segments a worker serves first."""

from collections.abc import Sequence


def share_of(segments: int, workers: int, worker: int) -> tuple[Sequence[int], Sequence[int]]:
    """The worker's own segments, and all others."""
    own = range(worker % workers, segments, workers)
    return own, [segment for segment in range(segments) if segment not in own]
