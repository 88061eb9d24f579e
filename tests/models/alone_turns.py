"""The steps of an executor with the message of one occurrence, as far as chunks matter to it: the
run protocol, and the looks at chunks (functions/carillon/executor/chunks/looks.py)."""

from tests.models.chunk_state import (
    Executor,
    Moves,
    Row,
    State,
    at,
    called,
    sent,
    spared,
    succeeded,
    with_row,
)
from tests.models.chunk_turns import Turn, alone

MOST_ATTEMPTS = 2


def alone_received(turn: Turn) -> Moves:
    """Claim the row, or do what it asks for."""
    me, state = turn.me, turn.state
    (name, generation), sent_attempt = me.text.members[0], me.text.attempt
    row = state.rows[at(name)]
    attempt = _claimed_attempt(row, sent_attempt)
    if attempt > MOST_ATTEMPTS and turn.has("gives up before the look"):
        yield turn.goes("gives up", me._replace(step="ending"), with_row(state, name, Row("dead")))
    elif attempt:
        by = tuple(sorted({*row.by, generation}))
        is_late = turn.variant.request == "pause" and state.change == "over"
        before = row._replace(claim=0, live=False)
        then = me._replace(step="alone_claimed", attempt=attempt, late=is_late, before=before)
        taken = with_row(state, name, Row("running", turn.claim, True, attempt, by))
        yield turn.goes(f"claims the row of {name}, attempt {attempt}", then, taken)
    elif row.status == "running":
        yield turn.leaves(f"finds the row of {name} held")
    else:
        yield turn.ends(f"finds the row of {name} {row.status}")


def _claimed_attempt(row: Row, attempt: int) -> int:
    """The attempt that a message may claim a row for; 0 for none."""
    if row.status == "none":
        return attempt if attempt == 1 else 0
    if row.status == "retrying":
        return attempt if attempt == row.attempt + 1 else 0
    lapsed = row.status == "running" and not row.live
    return max(row.attempt + 1, attempt) if lapsed else 0


def alone_claimed(turn: Turn) -> Moves:
    """Read the job, after the claim, and decide."""
    me, state = turn.me, turn.state
    name, generation = me.text.members[0]
    if state.rows[at(name)].claim != turn.claim:
        yield turn.again("has lost its claim")
        return
    start = _start(turn, generation) if name == "x" else "go"
    words = f"reads that generation {state.own} counts: {start}"
    if start == "skip":
        yield turn.goes(words, me._replace(step="ending"), with_row(state, name, Row("skipped")))
    elif start == "drop":
        yield turn.goes(words, me._replace(step="ending"), _discarded(turn))
    elif start == "wait":
        yield turn.goes(words, me._replace(step="waiting"), _released(turn))
    else:
        looks = name == "x" and me.text.attempt == 1 and state.own > turn.variant.own
        looks = looks and not turn.has("does not look")
        yield turn.goes(words, me._replace(step="looking" if looks else "alone_calling"))


def _start(turn: Turn, generation: int) -> str:
    """decide_start, of x: go, skip, drop, or wait for a commit."""
    variant, state = turn.variant, turn.state
    is_settled = state.own == variant.own  # an hour old: its occurrences go in chunks
    if turn.me.text.attempt > 1:
        return "skip" if state.halted else "go"
    if state.halted or generation == state.own:
        return "skip" if state.halted else "go"
    if variant.has_x(state.own):
        return "drop" if is_settled and not turn.has("adopts what is chunked") else "go"
    if generation > state.own:
        return "drop" if state.change == "over" else "wait"
    if variant.orphan and generation == 1:
        return "drop"
    return "go" if variant.request == "after" and not is_settled else "skip"


def looking(turn: Turn) -> Moves:
    """Read the chunk of the generation that was replaced just now, strongly."""
    me, state, own = turn.me, turn.state, turn.state.own
    looked = ("x", turn.variant.own)
    ends = [(c, dict(zip(c.members, c.ends, strict=False))) for c in state.chunks]
    found = [c.status if not end else end[looked] for c, end in ends if looked in c.members]
    if state.rows[0].claim != turn.claim:
        yield turn.again("has lost its claim")
    elif "claimed" in found and not turn.has("goes on beside a claimed chunk"):
        then = me._replace(step="waiting")
        yield turn.goes("looks: a chunk is under way", then, _released(turn))
    elif "ok" in found:
        yield turn.goes("looks: ok in a chunk", me._replace(step="ending"), _discarded(turn))
    else:
        row = state.rows[0]
        if "died" in found and looked[1] not in row.by and not turn.has("looks past a death"):
            dead = Row("running", 0, False, 1, looked[1:])
            me = me._replace(attempt=2, before=dead)
            row = row._replace(attempt=2, by=tuple(sorted({*row.by, looked[1]})))
        by = {*row.by, own} if turn.variant.has_x(own) else {*row.by}
        adopted = with_row(state, "x", row._replace(by=tuple(sorted(by))))
        yield turn.goes(f"looks: {found}", me._replace(step="alone_calling"), adopted)


def _released(turn: Turn) -> State:
    return with_row(turn.state, turn.me.text.members[0][0], turn.me.before)


def _discarded(turn: Turn) -> State:
    """The same for what represents nothing: a row that nobody else has claimed goes."""
    (name, generation), before = turn.me.text.members[0], turn.me.before
    others = tuple(each for each in before.by if each != generation)
    if before.status == "running" and not others:
        return with_row(turn.state, name, Row())
    return with_row(turn.state, name, before._replace(by=others))


def alone_calling(turn: Turn) -> Moves:
    """Call, or give up where executors have died on every attempt."""
    me, name = turn.me, turn.me.text.members[0][0]
    then = me._replace(step="alone_finishing", before=Row())
    if me.attempt > MOST_ATTEMPTS:
        yield turn.goes("has no attempt left", then._replace(is_final=True))
        return
    state = called(turn.state, name)
    if name == "x" and me.late:
        state = state._replace(wrong=("x starts under a claim after an acknowledged pause",))
    if turn.variant.own_lacks:
        state = state._replace(wrong=("x is called, which no schedule has",))
    yield turn.goes(f"calls {name}: ok", then._replace(called=name), state)
    if "failed" in turn.variant.ends:
        last = me.attempt == MOST_ATTEMPTS
        failed = then if last else then._replace(step="alone_resending")
        words, state = f"calls {name}: failed", spared(state, name)
        yield turn.goes(words, failed._replace(is_final=last), state)


def alone_resending(turn: Turn) -> Moves:
    """The message of the next attempt goes before the row."""
    me = turn.me
    state = sent(turn.state, alone(me.text.members[0], me.attempt + 1))
    yield turn.goes("sends the next attempt", me._replace(step="alone_finishing"), state)


def alone_finishing(turn: Turn) -> Moves:
    """The fenced finish."""
    me, name = turn.me, turn.me.text.members[0][0]
    row = turn.state.rows[at(name)]
    if row.status != "running" or row.claim != turn.claim:
        yield turn.again("is refused the finish")
        return
    state = succeeded(turn.state, name) if me.called else turn.state
    retrying = Row("retrying", 0, False, me.attempt, row.by)
    row = Row("succeeded") if me.called else Row("dead") if me.is_final else retrying
    then = Executor("ending", me.text)
    yield turn.goes(f"finishes the row: {row.status}", then, with_row(state, name, row))


def waiting(turn: Turn) -> Moves:
    yield turn.leaves("sends a copy")


def ending(turn: Turn) -> Moves:
    yield turn.ends("is done")
