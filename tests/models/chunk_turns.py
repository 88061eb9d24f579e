"""The steps of an executor with the message of a chunk (functions/carillon/executor/chunks)."""

from typing import NamedTuple

from tests.models.chunk_state import (
    ALONE,
    Chunk,
    Executor,
    Member,
    Moves,
    Row,
    State,
    Text,
    Variant,
    at,
    called,
    sent,
    spared,
    succeeded,
    unclaimed,
    with_row,
)


class Turn(NamedTuple):
    """One executor that is about to take a step."""

    variant: Variant
    state: State
    number: int

    @property
    def me(self) -> Executor:
        return self.state.executors[self.number]

    @property
    def claim(self) -> int:
        return self.number + 1

    @property
    def chunk(self) -> Chunk:
        return self.state.chunks[self.me.text.chunk]

    def has(self, bug: str) -> bool:
        return self.variant.bug == bug

    def goes(self, words: str, then: Executor, state: State | None = None) -> tuple[str, State]:
        state = self.state if state is None else state
        before, after = state.executors[: self.number], state.executors[self.number + 1 :]
        return f"executor {self.number} {words}", state._replace(executors=(*before, then, *after))

    def ends(self, words: str, state: State | None = None) -> tuple[str, State]:
        """Acknowledge the message."""
        state = self.state if state is None else state
        return self.goes(f"{words}, acknowledges", Executor(), unclaimed(state, self.claim))

    def leaves(self, words: str, state: State | None = None) -> tuple[str, State]:
        """Leave the message with the queue, or send a copy: it comes again."""
        state = sent(self.state if state is None else state, self.me.text)
        return self.goes(f"{words}, later", Executor(), unclaimed(state, self.claim))

    def again(self, words: str) -> tuple[str, State]:
        then = Executor(
            "received" if self.me.text.chunk != ALONE else "alone_received", self.me.text
        )
        return self.goes(words, then, unclaimed(self.state, self.claim))

    def with_chunk(self, chunk: Chunk) -> State:
        number, chunks = self.me.text.chunk, self.state.chunks
        return self.state._replace(chunks=(*chunks[:number], chunk, *chunks[number + 1 :]))


def alone(member: Member, attempt: int = 1) -> Text:
    return Text(ALONE, (member,), attempt)


def received(turn: Turn) -> Moves:
    me, chunk = turn.me, turn.chunk
    members = me.text.members
    following = Executor("following", me.text, left=members)
    again = turn.has("claims without a condition") or (
        turn.has("runs a lapsed chunk again") and not chunk.live
    )
    if chunk.status == "free" and me.text.dead:
        if turn.has("discards a dead letter"):
            yield turn.ends("discards a dead letter")
            return
        ended = Chunk("final", 0, False, members, ("alone",) * len(members))
        yield turn.goes("ends a chunk that nobody claimed", following, turn.with_chunk(ended))
    elif turn.has("reads the jobs before the claim") and not me.seen_own:
        own = -1 if turn.state.halted else turn.state.own
        yield turn.goes("reads the jobs BEFORE the claim", me._replace(seen_own=own))
    elif chunk.status == "free" or (chunk.status == "claimed" and again):
        is_late = turn.variant.request == "pause" and turn.state.change == "over"
        claimed = turn.with_chunk(Chunk("claimed", turn.claim, True, members))
        yield turn.goes("claims the chunk", me._replace(step="claimed", late=is_late), claimed)
    elif chunk.status == "final" and turn.has("acknowledges what is final"):
        yield turn.ends("finds the chunk final")
    elif chunk.status == "final":
        yield turn.goes("finds the chunk final", following)
    elif chunk.live and not turn.has("disbands under a live lease"):
        yield turn.leaves("finds the chunk's lease alive")
    else:
        died = chunk._replace(status="final", live=False, ends=("died",) * len(chunk.members))
        yield turn.goes("disbands the chunk", following, turn.with_chunk(died))


def claimed(turn: Turn) -> Moves:
    """Read the jobs, after the claim; send alone what is not to go in the chunk."""
    me, state = turn.me, turn.state
    own = me.seen_own or (-1 if state.halted else state.own)
    if turn.has("reads no jobs"):
        own = 1
    runs = tuple(each for each in me.text.members if each[0] == "x" and each[1] == own)
    others = [each for each in me.text.members if each[0] == "x" and each not in runs]
    ends = tuple("ok" if each[0] == "y" or each in runs else "alone" for each in me.text.members)
    then = me._replace(step="calling", running=runs, ends=ends)
    words = f"reads the jobs: runs {runs or 'no x'}"
    yield turn.goes(words, then, sent(state, *map(alone, others)))
    if "unrecorded" in turn.variant.ends:
        none = me._replace(step="finishing", ends=("alone",) * len(ends), raises=True)
        yield turn.goes("cannot read the jobs", none)


def calling(turn: Turn) -> Moves:
    """Call side by side; y succeeds at once."""
    me = turn.me
    y = "y" * any(each[0] == "y" for each in me.text.members)
    state = called(turn.state, y)
    if not me.running:
        yield turn.goes("calls the rest", me._replace(step="finishing", called=y), state)
        return
    if "unfit" in turn.variant.ends:
        then = _ended(me, "alone")._replace(step="finishing", called=y)
        yield turn.goes("sends x alone, uncalled", then, sent(state, alone(me.running[0])))
    state = called(state, "x")
    if me.late:
        state = state._replace(wrong=("x starts under a claim after an acknowledged pause",))
    both = me._replace(called=f"x{y}")
    if "ok" in turn.variant.ends:
        yield turn.goes("calls, x: ok", both._replace(step="finishing"), state)
    if "lasts" in turn.variant.ends:
        yield turn.goes("calls, x: lasts", both._replace(step="lasting"), state)
    failed, then = spared(state, "x"), me._replace(step="taking_row", called=y)
    if "failed" in turn.variant.ends:
        yield turn.goes("calls, x: failed", then, failed)
        yield turn.goes("calls, x: failed for good", then._replace(is_final=True), failed)
    if "unrecorded" in turn.variant.ends:
        lost = _ended(then, "died")._replace(step="finishing", raises=True)
        yield turn.goes("calls, x: failed, and so does the store", lost, failed)


def _ended(me: Executor, end: str) -> Executor:
    ends = zip(me.text.members, me.ends, strict=True)
    return me._replace(ends=tuple(end if m in me.running else e for m, e in ends))


def lasting(turn: Turn) -> Moves:
    """A call that lasts tries once for its row, and lets the chunk be finished without it."""
    me, state = turn.me, turn.state
    if state.rows[0].status == "none":
        row = Row("running", turn.claim, True, 1, (me.running[0][1],))
        then = _ended(me, "alone")._replace(step="finishing")
        state = _x(state, row)
        yield turn.goes("puts the row of x, which lasts", then, state)
        if "unrecorded" not in turn.variant.ends:
            return
    minds = not turn.has("does not mind a row without answer")
    unsure = me._replace(step="finishing", raises=minds)
    yield turn.goes("has no answer, or no row; x: ok", unsure, state)
    then = me._replace(step="taking_row", called=me.called.replace("x", ""))
    yield turn.goes("has no answer, or no row; x: failed", then, spared(state, "x"))


def taking_row(turn: Turn) -> Moves:
    """Put the row of a failure under the chunk's claim; another's is waited for, but not long."""
    me, state, row = turn.me, turn.state, turn.state.rows[0]
    is_mine = row.status == "running" and row.claim == turn.claim
    if row.status == "none" or is_mine or turn.has("overwrites rows"):
        taken = Row("running", turn.claim, True, 1, (me.running[0][1],))
        yield turn.goes("puts the row of x", me._replace(step="recording"), _x(state, taken))
    else:
        then = _ended(me, "died")._replace(step="finishing", raises=True)
        if turn.has("takes a refused row for an end"):
            then = _ended(me, "alone")._replace(step="finishing")
        yield turn.goes(f"gives the row of x up: {row.status}", then)


def recording(turn: Turn) -> Moves:
    """The message of the next attempt goes before the row."""
    me = turn.me
    state = turn.state if me.is_final else sent(turn.state, alone(me.running[0], 2))
    yield turn.goes("sends what follows the failure", me._replace(step="row_finishing"), state)


def row_finishing(turn: Turn) -> Moves:
    """The fenced finish of the failure's row."""
    me = turn.me
    if _holds(turn):
        row = Row("dead") if me.is_final else Row("retrying", 0, False, 1, (me.running[0][1],))
        words, state = f"finishes the row: {row.status}", _x(turn.state, row)
    else:
        words, state = "is refused the row", sent(turn.state, alone(me.running[0]))
    then = me if me.settled else _ended(me, "alone")
    yield turn.goes(words, then._replace(step="going_on" if me.settled else "finishing"), state)


def finishing(turn: Turn) -> Moves:
    """The one finish, under the claim's id."""
    me, chunk, state = turn.me, turn.chunk, turn.state
    lasts = "x" if "x" in me.called and "ok" not in _ends_of_x(me) else ""
    then = me._replace(step="going_on", settled=True, called=lasts)
    if (chunk.status, chunk.claim) != ("claimed", turn.claim) and not turn.has(
        "finishes under any claim"
    ):
        yield turn.goes("is refused the finish", then._replace(refused=True))
        return
    for member, end in zip(me.text.members, me.ends, strict=True):
        state = succeeded(state, member[0]) if end == "ok" else state
    final = Chunk("final", 0, False, me.text.members, me.ends)
    state = state._replace(chunks=turn.with_chunk(final).chunks)
    yield turn.goes(f"finishes the chunk: {me.ends}", then, state)


def _ends_of_x(me: Executor) -> list[str]:
    return [e for m, e in zip(me.text.members, me.ends, strict=True) if m in me.running]


def going_on(turn: Turn) -> Moves:
    """The chunk is settled: a call that lasts ends, and the turn with it."""
    me = turn.me
    if "x" in me.called:
        done = me._replace(called="")
        if _holds(turn):
            state = succeeded(_x(turn.state, Row("succeeded")), "x")
            yield turn.goes("finishes the row: succeeded", done, state)
        else:
            state = sent(turn.state, alone(me.running[0]))
            yield turn.goes("is refused the row, sends x alone", done, state)
        failed = done._replace(step="recording")
        yield turn.goes("ends x: failed", failed, spared(turn.state, "x"))
    elif me.raises and not turn.has("acknowledges what it could not record"):
        yield turn.leaves("has met an error")
    elif me.refused:
        yield turn.again("begins again")
    else:
        yield turn.ends("has done the chunk")


def following(turn: Turn) -> Moves:
    """The chunk has ended: each member of the message that has not succeeded gets its message."""
    me, chunk, state = turn.me, turn.chunk, turn.state
    if not me.left:
        yield turn.ends("has followed up")
        return
    member = me.left[0]
    ends = dict(zip(chunk.members, chunk.ends, strict=True))
    end = ends.get(member, "unlisted")
    done = {each[0] for each in me.text.members if ends.get(each) == "ok"}
    if member[0] in done:
        end = f"{end}, done"  # by its run key, perhaps under another generation
        row = state.rows[at(member[0])]
        if row.status == "running" and row.live:
            yield turn.leaves(f"finds the row of {member} claimed")
            return
        if row.status == "running" and not turn.has("keeps a row without answer"):
            state = with_row(state, member[0], Row())
    elif end == "unlisted" and turn.has("drops what is unlisted"):
        end = "dropped"
    elif end == "died" and turn.has("sends nothing of what died"):
        end = "died, dropped"
    else:
        if end == "died" and not turn.has("leaves a death uncounted"):
            row = state.rows[at(member[0])]
            is_other = row.status == "running" and member[1] not in row.by
            only_new = turn.has("counts a death only where there is no row")
            if is_other and row.live and not only_new:
                yield turn.leaves(f"finds the row of {member} claimed for others")
                return
            is_free = row.status == "none" or (
                row.status == "cancelled" and turn.has("counts a death over a cancelled run")
            )
            if is_free or (is_other and not only_new):
                by, attempt = tuple(sorted({member[1], *row.by})), max(row.attempt, 1)
                state = with_row(state, member[0], Row("running", 0, False, attempt, by))
        state = sent(state, alone(member))
    yield turn.goes(f"follows {member} up: {end}", me._replace(left=me.left[1:]), state)


def _holds(turn: Turn) -> bool:
    row = turn.state.rows[0]
    return row.status == "running" and row.claim == turn.claim


def _x(state: State, row: Row) -> State:
    return with_row(state, "x", row)
