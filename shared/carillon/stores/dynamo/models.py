"""The shapes of the items. The template of the tables must agree with them; a test compares.

They define the stored attributes; connections and table names belong to `table.Table`, so that one
process can hold several stores. Optional attributes are absent, never null.
"""

from typing import Any

from pynamodb.attributes import (
    BinaryAttribute,
    BooleanAttribute,
    ListAttribute,
    MapAttribute,
    TTLAttribute,
    UnicodeAttribute,
)
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex, IncludeProjection
from pynamodb.models import Model

from carillon.stores.dynamo.attributes import (
    InstantAttribute,
    IntegerAttribute,
    TextMapAttribute,
)
from carillon.stores.ports import EXPIRY_ATTRIBUTE, LISTED_MEMBERS


class Map(MapAttribute[str, Any]):
    """A map of declared attributes, with a constructor that a type checker can call."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)  # type: ignore[no-untyped-call]


class GenerationMap(Map):
    generation_id = UnicodeAttribute()
    from_at = InstantAttribute()
    until_at = InstantAttribute(null=True)
    """Only of a generation that was replaced."""
    place: ListAttribute[Any] = ListAttribute(null=True)
    """Segment, lane and offset in seconds; only of a replaced generation that was plain."""
    owes_until = InstantAttribute(null=True)


class SlowMap(Map):
    since = InstantAttribute()
    reason = UnicodeAttribute()


class OwnerIndex(GlobalSecondaryIndex["JobRow"]):  # type: ignore[no-untyped-call]
    """The jobs of an owner by name, with what lists filter by or show; no tombstones."""

    class Meta:
        index_name = "by_owner"
        projection = IncludeProjection(list(LISTED_MEMBERS))

    owner = UnicodeAttribute(hash_key=True)
    list_key = UnicodeAttribute(range_key=True)


class JobRow(Model):
    """One job; table jobs. Absent: what is left to the default.

    The settings that the index shows stand beside `spec`, which has them all.
    """

    job_id = UnicodeAttribute(hash_key=True, attr_name="pk")
    sort_key = UnicodeAttribute(range_key=True, attr_name="sk")
    """`job`, the same for all."""
    owner = UnicodeAttribute()
    list_key = UnicodeAttribute(null=True)
    """Absent on tombstones."""
    name = UnicodeAttribute()
    times = UnicodeAttribute()
    """The settings that decide when it fires, as JSON, without those that are null."""
    spec = UnicodeAttribute()
    """All settings as JSON, defaults too: a new default changes no stored job."""
    parent = UnicodeAttribute(null=True)
    tags = TextMapAttribute(null=True)
    ends_at = InstantAttribute(null=True)
    """The schedule's own end: the earlier of `end_at` and the last of `max_runs` occurrences."""
    segment = IntegerAttribute()
    generation = GenerationMap()
    previous = GenerationMap(null=True)
    earlier = ListAttribute(of=GenerationMap, null=True)
    created_at = InstantAttribute()
    updated_at = InstantAttribute()
    state = UnicodeAttribute()
    revision = IntegerAttribute()
    slow = SlowMap(null=True)
    note = UnicodeAttribute(null=True)
    fingerprint = UnicodeAttribute()
    creation_key = UnicodeAttribute(null=True)
    former_keys = ListAttribute(of=UnicodeAttribute, null=True)
    managed_by = UnicodeAttribute(null=True)
    applied = UnicodeAttribute(null=True)
    author = ListAttribute(of=UnicodeAttribute, null=True)
    """Kind, id, name and way; absent for Carillon itself."""
    renamed_to = UnicodeAttribute(null=True)
    renamed_from = UnicodeAttribute(null=True)
    renamed_at = InstantAttribute(null=True)
    handed_to = ListAttribute(of=UnicodeAttribute, null=True)
    """The other owner, the generation under which it has ended, and `done`."""
    handed_from = ListAttribute(of=UnicodeAttribute, null=True)
    successors = UnicodeAttribute(null=True)
    """As JSON: one value, which a write compares."""
    spread_seconds = IntegerAttribute(null=True)
    paused_at = InstantAttribute(null=True)
    resume_at = InstantAttribute(null=True)
    ends = BooleanAttribute(null=True)
    """Present only when true: no occurrence is left one day."""
    last_change = UnicodeAttribute(null=True)
    """As JSON: the change that made this revision."""
    expires_at = TTLAttribute(attr_name=EXPIRY_ATTRIBUTE, null=True)
    by_owner = OwnerIndex()


class SideRow(Model):
    """A row of one RowKind, as a calendar; in table jobs too."""

    partition = UnicodeAttribute(hash_key=True, attr_name="pk")
    """`~owner/{owner}`, or `~{kind}/{digest of owner and key}` where keys are any text: herds write
    such rows, each in a partition of its own. No job id begins with a tilde."""
    sort_key = UnicodeAttribute(range_key=True, attr_name="sk")
    """`{kind}/{key}`, or `{kind}`."""
    owner = UnicodeAttribute()
    revision = IntegerAttribute()
    body = UnicodeAttribute()
    """The other members, as JSON."""
    expires_at = TTLAttribute(attr_name=EXPIRY_ATTRIBUTE, null=True)


class WheelRow(Model):
    """One entry; table wheel. Its names are single letters: the tick pays for each byte it reads.

    Job id and generation id are in the key. Absent: lane when normal, catch-up when latest, zone
    when UTC, and whatever else is the default.
    """

    segment_slot = UnicodeAttribute(hash_key=True)
    entry_key = UnicodeAttribute(range_key=True)
    owner = UnicodeAttribute(attr_name="o")
    from_at = InstantAttribute(attr_name="f")
    schedule = UnicodeAttribute(attr_name="s", null=True)
    timezone = UnicodeAttribute(attr_name="z", null=True)
    start_at = InstantAttribute(attr_name="a", null=True)
    """The schedule's anchor."""
    end_at = InstantAttribute(attr_name="e", null=True)
    dst = UnicodeAttribute(attr_name="d", null=True)
    spread_seconds = IntegerAttribute(attr_name="w", null=True)
    calendar = UnicodeAttribute(attr_name="k", null=True)
    """`n/holidays`: the rule's first letter and the calendar's name."""
    zone_digest = UnicodeAttribute(attr_name="g", null=True)
    lane = UnicodeAttribute(attr_name="l", null=True)
    catch_up = UnicodeAttribute(attr_name="c", null=True)
    grace_seconds = IntegerAttribute(attr_name="r", null=True)
    chunked_from = IntegerAttribute(attr_name="q", null=True)
    within_seconds = IntegerAttribute(attr_name="x", null=True)
    """Only of the entries of a job's watch."""
    message = UnicodeAttribute(attr_name="m", null=True)
    """A queue body, sent as it is."""
    expires_at = TTLAttribute(attr_name=EXPIRY_ATTRIBUTE, null=True)


class BacklogMap(Map):
    announced = IntegerAttribute()
    done = IntegerAttribute()
    until = IntegerAttribute()
    taken_up_at = InstantAttribute()


class CursorMap(Map):
    minute = IntegerAttribute()
    slot_key = UnicodeAttribute()
    entry_key = UnicodeAttribute()


class SharesMap(Map):
    until = IntegerAttribute()
    begins_at = InstantAttribute()
    counts = ListAttribute(of=IntegerAttribute)
    placed = ListAttribute(of=IntegerAttribute)


class ControlRow(Model):
    """A segment's control item; in table wheel too, in a partition of its own."""

    segment_slot = UnicodeAttribute(hash_key=True)
    entry_key = UnicodeAttribute(range_key=True)
    horizon = IntegerAttribute()
    watermark = IntegerAttribute()
    token = IntegerAttribute()
    lease_owner = UnicodeAttribute(null=True)
    lease_until = InstantAttribute(null=True)
    backlog = ListAttribute(of=BacklogMap, null=True)
    cursor = CursorMap(null=True)
    backlog_cursor = CursorMap(null=True)
    throttled_until = InstantAttribute(null=True)
    shares = SharesMap(null=True)
    idle = BooleanAttribute(null=True)
    """Present only when true."""
    tzdata = UnicodeAttribute(null=True)
    tzdata_from = IntegerAttribute(null=True)


class ErrorMap(Map):
    kind = UnicodeAttribute(attr_name="k")
    message = UnicodeAttribute(attr_name="m")
    permanent = BooleanAttribute(attr_name="p", null=True)
    """Present only when true."""


class AttemptMap(Map):
    attempt = IntegerAttribute(attr_name="n")
    started_at = InstantAttribute(attr_name="b")
    finished_at = InstantAttribute(attr_name="e")
    error = ErrorMap(attr_name="x")
    token_hash = UnicodeAttribute(attr_name="h", null=True)


class CompletionMap(Map):
    token_hash = UnicodeAttribute(attr_name="h")
    until = InstantAttribute(attr_name="u")
    heartbeat_seconds = IntegerAttribute(attr_name="b")
    is_open = BooleanAttribute(attr_name="o", null=True)
    """Present only when true."""
    permits = ListAttribute(attr_name="p", of=UnicodeAttribute, null=True)


class ActivityRow(Model):
    """One record of the activity feed; in table runs too, in partitions of its own."""

    partition = UnicodeAttribute(hash_key=True, attr_name="job_key")
    """`{owner}#feed#{day}#{shard}`: no job id has a `#`."""
    position = UnicodeAttribute(range_key=True, attr_name="run_key")
    """`{minute:second}#{batch id}`."""
    body = BinaryAttribute(attr_name="b", legacy_encoding=False)
    """JSON, compressed by zlib."""
    expires_at = TTLAttribute(attr_name=EXPIRY_ATTRIBUTE)


class ResultRow(Model):
    """The whole result of a claim; in table runs too, in a partition of its run's own."""

    partition = UnicodeAttribute(hash_key=True, attr_name="job_key")
    """`{owner}#result#{run id}`."""
    claim_id = UnicodeAttribute(range_key=True, attr_name="run_key")
    body = BinaryAttribute(attr_name="b", legacy_encoding=False)
    """The text, compressed by zlib."""
    expires_at = TTLAttribute(attr_name=EXPIRY_ATTRIBUTE)


class ChunkRow(Model):
    """One chunk; in table runs too, in a partition of its own: herds write thousands a second."""

    partition = UnicodeAttribute(hash_key=True, attr_name="job_key")
    """`~chunk#{segment}#{minute}#{second}#{lane}#{bucket}`: no owner begins with a tilde."""
    kind = UnicodeAttribute(range_key=True, attr_name="run_key")
    """`chunk`, the same for all."""
    claim_id = UnicodeAttribute(attr_name="c")
    claimed_at = InstantAttribute(attr_name="a")
    lease_until = InstantAttribute(attr_name="l")
    refs = BinaryAttribute(attr_name="m", legacy_encoding=False, null=True)
    """Of a claimed chunk: the references to its occurrences, 13 bytes each."""
    ends = BinaryAttribute(attr_name="e", legacy_encoding=False, null=True)
    """Of a final chunk: the ends of its occurrences, 27 bytes each."""
    results = ListAttribute(attr_name="r", of=UnicodeAttribute, null=True)
    """The different results of its occurrences."""
    expires_at = TTLAttribute(attr_name=EXPIRY_ATTRIBUTE)


class PlanRow(Model):
    """The plan of a segment's minute; in table runs too."""

    partition = UnicodeAttribute(hash_key=True, attr_name="job_key")
    """`~plan#{segment}#{minute}`."""
    kind = UnicodeAttribute(range_key=True, attr_name="run_key")
    """`plan`, the same for all."""
    salt = UnicodeAttribute(attr_name="s")
    chunks = UnicodeAttribute(attr_name="k", null=True)
    """JSON: a list of second, lane, and number of chunks; absent when all goes alone."""
    expires_at = TTLAttribute(attr_name=EXPIRY_ATTRIBUTE)


class GenerationRow(Model):
    """The record of a generation; in table runs too, in a partition of its job's own.

    Zone and bounds of the schedule are as in an entry.
    """

    partition = UnicodeAttribute(hash_key=True, attr_name="job_key")
    """`~generations#{owner}#{job id}`: no owner begins with a tilde."""
    revision = UnicodeAttribute(range_key=True, attr_name="run_key")
    """Of the job's row, in ten digits."""
    generation_id = UnicodeAttribute(attr_name="i")
    from_at = InstantAttribute(attr_name="f")
    until_at = InstantAttribute(attr_name="u")
    schedule = UnicodeAttribute(attr_name="s")
    timezone = UnicodeAttribute(attr_name="z")
    start_at = InstantAttribute(attr_name="a", null=True)
    end_at = InstantAttribute(attr_name="e", null=True)
    dst = UnicodeAttribute(attr_name="d", null=True)
    segment = IntegerAttribute(attr_name="g")
    lane = UnicodeAttribute(attr_name="l")
    spread_seconds = IntegerAttribute(attr_name="w")
    expires_at = TTLAttribute(attr_name=EXPIRY_ATTRIBUTE)


class ChangeRow(Model):
    """One change; in table runs too, in a partition of its subject's own."""

    partition = UnicodeAttribute(hash_key=True, attr_name="job_key")
    """`~changes#{owner}#{subject}#{key}`: no owner begins with a tilde, and no key has a `#`."""
    position = UnicodeAttribute(range_key=True, attr_name="run_key")
    action = UnicodeAttribute(attr_name="a")
    by_id = UnicodeAttribute(attr_name="i")
    by_name = UnicodeAttribute(attr_name="n", null=True)
    body = UnicodeAttribute(attr_name="b")
    """The change, as JSON."""
    attention_owner = UnicodeAttribute()
    """`changes#{owner}`: no kind of attention has this name."""
    attention_key = UnicodeAttribute()
    expires_at = TTLAttribute(attr_name=EXPIRY_ATTRIBUTE)


class AttentionIndex(GlobalSecondaryIndex["RunRow"]):  # type: ignore[no-untyped-call]
    """Runs of an owner that need attention, newest fire time first: dead letters, those that are to
    be retried, and those that a policy keeps waiting. Rows of other runs are not in it."""

    class Meta:
        index_name = "attention"
        projection = AllProjection()

    attention_owner = UnicodeAttribute(hash_key=True)
    """`{attention}#{owner}`."""
    attention_key = UnicodeAttribute(range_key=True)


class RunRow(Model):
    """One run; table runs. Names are short, so that an ordinary run is one write unit (1 KB): rows
    are what full history costs to keep. What two attributes would say is in one."""

    job_key = UnicodeAttribute(hash_key=True)
    run_key = UnicodeAttribute(range_key=True)
    status = UnicodeAttribute(attr_name="s")
    attempt = IntegerAttribute(attr_name="n")
    token = IntegerAttribute(attr_name="t")
    claim_id = UnicodeAttribute(attr_name="c")
    generation_id = UnicodeAttribute(attr_name="g")
    updated_at = InstantAttribute(attr_name="u", null=True)
    """None where it is `finished_at`."""
    lease_until = InstantAttribute(attr_name="l", null=True)
    started_at = InstantAttribute(attr_name="b", null=True)
    """None where it is `attempt_started_at`."""
    attempt_started_at = InstantAttribute(attr_name="a", null=True)
    finished_at = InstantAttribute(attr_name="e", null=True)
    next_attempt_at = InstantAttribute(attr_name="w", null=True)
    result = UnicodeAttribute(attr_name="r", null=True)
    result_bytes = IntegerAttribute(attr_name="rb", null=True)
    error = ErrorMap(attr_name="x", null=True)
    reason = UnicodeAttribute(attr_name="y", null=True)
    covers_from = InstantAttribute(attr_name="cf", null=True)
    covers_count = IntegerAttribute(attr_name="cn", null=True)
    effective_at = InstantAttribute(attr_name="d", null=True)
    note = UnicodeAttribute(attr_name="o", null=True)
    settled = UnicodeAttribute(attr_name="z", null=True)
    waits = IntegerAttribute(attr_name="k", null=True)
    """Only of a run that has waited."""
    attempts = ListAttribute(attr_name="h", of=AttemptMap, null=True)
    other_generations = UnicodeAttribute(attr_name="og", null=True)
    completion = CompletionMap(attr_name="p", null=True)
    attention_owner = UnicodeAttribute(null=True)
    attention_key = UnicodeAttribute(null=True)
    expires_at = TTLAttribute(attr_name=EXPIRY_ATTRIBUTE)
    attention = AttentionIndex()
