"""Pauses between repetitions of what a service did not take."""

from carillon.clock import Clock, Entropy

ATTEMPTS = 8
"""Times that a part refused by a batch is sent before the store or queue counts as unavailable."""
_BASE_SECONDS = 0.05
_CAP_SECONDS = 2.0


def pause(attempt: int, clock: Clock, entropy: Entropy) -> None:
    """Sleep after the refused attempt number `attempt` (from 1): full jitter, at most 2 s."""
    ceiling = min(_CAP_SECONDS, _BASE_SECONDS * 2 ** (attempt - 1))
    clock.sleep(ceiling * (1 - entropy.fraction()))
