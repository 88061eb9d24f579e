"""Which faults a seed has, and how often each strikes."""

from dataclasses import replace

from carillon.simulation.faults import Draws, Fault, Faults

_MOST = Faults(
    dies=0.03,
    throttled=0.1,
    lost=0.1,
    part_sent=0.2,
    contended=0.4,
    slow=0.1,
    paused=0.04,
    stale=1.0,
    duplicated=0.5,
    late=0.2,
    throttled_invocation=0.5,
    target_fails=0.5,
    target_refuses=0.2,
    target_hangs=0.2,
    target_lost=0.3,
    tick_missing=0.7,
    tick_doubled=1.0,
    tick_late=0.8,
    tick_skewed=0.8,
    share_missing=0.6,
    share_doubled=1.0,
    share_late=0.8,
)
"""The most that one kind alone may strike: a run makes some ten calls."""

OF_SHARES = (Fault.SHARE_MISSING, Fault.SHARE_DOUBLED, Fault.SHARE_LATE)
_DRAWN = tuple(fault for fault in Fault if fault not in OF_SHARES)
"""Shares are there in some worlds only, and so are their faults."""

_STORMS: dict[str, tuple[Fault, ...]] = {
    "ticks": (
        Fault.TICK_MISSING,
        Fault.TICK_DOUBLED,
        Fault.TICK_LATE,
        Fault.TICK_SKEWED,
        Fault.DIES,
        Fault.PAUSED,
        Fault.CONTENDED,
    ),
    "stores": (Fault.THROTTLED, Fault.LOST, Fault.CONTENDED, Fault.SLOW, Fault.STALE),
    "queue": (
        *(Fault.PART_SENT, Fault.DUPLICATED, Fault.LATE, Fault.THROTTLED, Fault.DIES),
        Fault.THROTTLED_INVOCATION,
    ),
    "targets": (
        Fault.TARGET_FAILS,
        Fault.TARGET_REFUSES,
        Fault.TARGET_HANGS,
        Fault.TARGET_LOST,
        Fault.DUPLICATED,
        Fault.DIES,
    ),
    "deaths": (Fault.DIES, Fault.PAUSED, Fault.DUPLICATED, Fault.LATE, Fault.THROTTLED_INVOCATION),
    "frozen ticks": (Fault.PAUSED, Fault.TICK_DOUBLED, Fault.TICK_LATE, Fault.SLOW),
    "everything": _DRAWN,
}


def faults_of(seed: int) -> tuple[str, Faults]:
    """The name of the profile, and the probabilities."""
    draws = Draws(seed, "faults")
    kind = draws.fraction()
    if kind < 0.06:
        return "calm", Faults()
    if kind < 0.4:
        fault = _DRAWN[seed % len(_DRAWN)]
        return fault.value, _strengths((fault,), draws, 1.0)
    if kind < 0.5:
        # Two kinds that may have to do with each other.
        pair = (draws.choice(_DRAWN), draws.choice(_DRAWN))
        return " and ".join(fault.value for fault in pair), _strengths(pair, draws, 0.7)
    name = draws.choice((*_STORMS, "everything"))
    return f"storm of {name}", _strengths(_STORMS[name], draws, 0.4)


def with_faults_of_shares(seed: int, faults: Faults) -> Faults:
    """The same, and faults of the ticks that a root invites, each in half of the worlds."""
    draws = Draws(seed, "faults of shares")
    kinds = tuple(fault for fault in OF_SHARES if draws.fraction() < 0.5)
    more = {fault.value: getattr(_MOST, fault.value) * draws.fraction() for fault in kinds}
    return replace(faults, **more)


def _strengths(kinds: tuple[Fault, ...], draws: Draws, share: float) -> Faults:
    """Each of these kinds up to a share of its most, often far below."""
    probabilities = {
        fault.value: getattr(_MOST, fault.value) * share * (0.1 + 0.9 * draws.fraction() ** 2)
        for fault in kinds
    }
    return replace(Faults(), **probabilities)
