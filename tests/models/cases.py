"""All models with their cases: variants that hold, and bugs that break them."""

from dataclasses import replace

from tests.models.chunk_model import ChunkModel
from tests.models.chunk_state import Member, Variant
from tests.models.kit import Breaks, Holds
from tests.models.plan_model import PlanModel

ALL = ("ok", "failed", "lasts", "unrecorded", "unfit")
FAILS = ("ok", "failed")
X: tuple[Member, ...] = (("x", 1),)
XY: tuple[Member, ...] = (*X, ("y", 1))
X2: tuple[Member, ...] = (("x", 2),)

_ONE = Variant(((0, X),))
_PAIR = Variant(((0, XY),), ALL)
_LESS = Variant(((0, XY), (0, X)), FAILS)
"""Of the second message y was removed."""
_PAUSE = Variant(((0, X),), ALL, "pause")
_CANCEL = Variant(((0, X),), ALL, "cancel")
_YIELDS = Variant(((0, X),), ALL, "yields")
_TOGETHER = Variant(((0, X + X2),), FAILS, own=2)
_APART = Variant(((0, X), (1, X2)), FAILS, own=2)
"""Generations in slots of different kinds, or segments."""
_ORPHAN = Variant(((0, X),), own=2, orphan=True, own_lacks=True)


def _holds(name: str, least: int, variant: Variant, big: bool = False, **given: object) -> Holds:
    return Holds(name, ChunkModel(replace(variant, **given)), least, big)  # type: ignore[arg-type]


CHUNKS = [
    _holds("no faults", 1_200, _PAIR),
    _holds("a crash", 16_000, _PAIR, crashes=1),
    _holds("a lapse", 6_000, _PAIR, lapses=1),
    _holds("doubled, a crash, a lapse", 18_000, _ONE, ends=FAILS, crashes=1, lapses=1, doubles=1),
    _holds("the second message lacks y, a crash", 42_000, _LESS, crashes=1),
    _holds("a dead letter, doubled", 29_000, _PAIR, letters=1, doubles=1),
    _holds("a pause, a crash", 6_000, _PAUSE, crashes=1),
    _holds("a cancel, a crash", 3_600, _CANCEL, crashes=1),
    _holds("a cancel, a lapse, doubled", 8_400, _CANCEL, ends=FAILS, lapses=1, doubles=1),
    _holds("a cancel beside y, a lapse", 17_000, _CANCEL, lists=((0, XY),), lapses=1),
    _holds("a change, a crash", 31_000, _YIELDS, crashes=1),
    _holds("a change, a lapse", 14_000, _YIELDS, lapses=1),
    _holds("a change to what lacks x, a crash", 3_600, _YIELDS, request="lacks", crashes=1),
    _holds("a change after x, a crash", 3_800, _YIELDS, request="after", crashes=1),
    _holds("two generations in one chunk", 32_000, _TOGETHER, crashes=1, doubles=1),
    _holds("two generations in two chunks", 13_000, _APART, crashes=1),
    _holds(
        "two in two chunks, a change", 55_000, _APART, request="yields", ends=("ok",), crashes=1
    ),
    _holds("an orphan, doubled, a crash", 1_200, _ORPHAN, crashes=1, doubles=1),
    _holds("a generation that ended", 1_200, _ORPHAN, orphan=False, crashes=1, doubles=1),
    _holds("big: doubled, a crash, a lapse", 644_000, _PAIR, True, crashes=1, lapses=1, doubles=1),
    _holds("big: a change, two crashes", 100_000, _YIELDS, True, crashes=2),
    _holds("big: a change, a crash, a lapse", 126_000, _YIELDS, True, crashes=1, lapses=1),
    _holds("big: two in two, a change", 250_000, _APART, True, request="yields", crashes=1),
    _holds("big: three executors", 119_000, _YIELDS, True, crashes=1, executors=3),
]


def _breaks(bug: str, promise: str, variant: Variant, **given: object) -> Breaks:
    return Breaks(bug, ChunkModel(replace(variant, bug=bug, **given)), promise)  # type: ignore[arg-type]


_AGAIN, _LOST = "x is called again for no reason", "x ends without an outcome"
_LEFT = "x succeeded in a chunk, and its row says running"
_OFTEN = "x is called more often than it has attempts"
_CHANGED = replace(_YIELDS, ends=FAILS)
CHUNK_BUGS = [
    _breaks("claims without a condition", _AGAIN, _ONE, doubles=1),
    _breaks("runs a lapsed chunk again", _LEFT, _PAIR, crashes=1),
    _breaks("disbands under a live lease", _AGAIN, _ONE, doubles=1),
    _breaks("reads the jobs before the claim", _AGAIN, _CHANGED),
    _breaks("reads no jobs", "x starts under a claim after an acknowledged pause", _PAUSE),
    _breaks("finishes under any claim", "two successes of x", _ONE, lapses=1, doubles=1),
    _breaks("cancels without a fence", "x has two outcomes", _CANCEL, ends=FAILS, lapses=1),
    _breaks("overwrites rows", _OFTEN, _ONE, ends=FAILS, lapses=1, doubles=1),
    _breaks("takes a refused row for an end", _LOST, _TOGETHER, crashes=1, doubles=1),
    _breaks("acknowledges what it could not record", _LOST, _PAIR),
    _breaks("acknowledges what is final", _LOST, _ONE, crashes=2),
    _breaks("does not mind a row without answer", _LEFT, _PAIR),
    _breaks("keeps a row without answer", _LEFT, _PAIR),
    _breaks("drops what is unlisted", "y ends without an outcome", _LESS, crashes=1),
    _breaks("sends nothing of what died", _LOST, _ONE, crashes=1),
    _breaks("leaves a death uncounted", _OFTEN, _ONE, ends=FAILS, crashes=1),
    _breaks("counts a death only where there is no row", _OFTEN, _TOGETHER, crashes=1),
    _breaks("looks past a death", _OFTEN, _CHANGED, crashes=1),
    _breaks("counts a death over a cancelled run", "a cancelled run goes on", _CANCEL, crashes=1),
    _breaks("discards a dead letter", _LOST, _ONE, letters=1),
    _breaks("does not look", _AGAIN, _CHANGED),
    _breaks("goes on beside a claimed chunk", _AGAIN, _CHANGED),
    _breaks("gives up before the look", "x has two outcomes", _YIELDS, ends=("ok",), crashes=2),
    _breaks("adopts what is chunked", _AGAIN, _CHANGED),
]

_LIVE, _UNPLANNED = ("live", "live"), ("unannounced", "late")
PLANS = [
    Holds("an old minute", PlanModel(), 400),
    Holds("a late indexer", PlanModel(late=True), 540),
    Holds("an entry is removed", PlanModel(removable="b"), 1_500),
    Holds("both", PlanModel(_LIVE, True, "b"), 2_700),
    Holds("chunks are switched off", PlanModel(("live", "off"), True, "b"), 3_600),
    Holds("chunks are switched on", PlanModel(("off", "live"), True, "b"), 3_600),
    Holds("new rules of a zone", PlanModel(("live", "rules")), 400),
    Holds("new rules, and a late indexer", PlanModel(("live", "rules"), True, "b"), 400),
    Holds("left to a backlog", PlanModel(("live", "late"), True, "b"), 3_400),
    Holds("sent alone, then announced", PlanModel(_UNPLANNED, True, "b"), 1_700),
]
_A_TWICE, _B_TWICE, _C_TWICE = (f"{each} ran in two places" for each in "abc")


def _misplans(bug: str, promise: str, modes: tuple[str, str] = _LIVE, late: bool = False) -> Breaks:
    return Breaks(bug, PlanModel(modes, late, "b", bug), promise)


PLAN_BUGS = [
    _misplans("plans nothing", _A_TWICE),
    _misplans("plans after the send", _A_TWICE),
    _misplans("draws a salt of its own", _B_TWICE),
    _misplans("counts again what goes alone", _A_TWICE, late=True),
    _misplans("chunks what is young", _C_TWICE, late=True),
    _misplans("obeys no plan where chunks are off", _A_TWICE, ("live", "off")),
    _misplans("plans a backlog", _A_TWICE, _UNPLANNED),
    _misplans("does not look", _B_TWICE, ("live", "rules")),
    _misplans("plans after what is marked", _B_TWICE, ("live", "rules")),
]

EVERYTHING: dict[str, list[Holds | Breaks]] = {
    "chunks": [*CHUNKS, *CHUNK_BUGS],
    "plans": [*PLANS, *PLAN_BUGS],
}
