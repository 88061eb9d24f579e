"""Lambda entry point of the tick: the rule's own invocation each minute, the root, and those that
the root makes, the shares.

The minute comes from the clock and the watermarks, never from the event: EventBridge rules fire
late, twice, or not at all, and so do asynchronous invocations. This is the only place of the tick
that composes objects.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import version
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from carillon.clock import SideBySideThreads, SystemClock, SystemEntropy
from carillon.domain.wheel.entry import minute_of
from carillon.errors import StoreUnavailableError, reason_of
from carillon.garbage import spare_what_is_loaded
from carillon.services.indexer import Indexer
from carillon.settings import TICK_RESERVE_SECONDS, Settings
from carillon.stores.dynamo import open_stores
from carillon.stores.ports import SKEW_LIMIT_SECONDS
from carillon.stores.segments import segments_in_use
from carillon.telemetry import Action, Metric, create_telemetry
from carillon.tick.canary import CanaryKeeper
from carillon.tick.counting import SegmentOutcome, SegmentReport, change_of
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.inviting import Invoker
from carillon.tick.ports import TickPorts
from carillon.tick.root import Root
from carillon.tick.sharing import Share, Worth, in_order, segments_of, share_in

MOST_VISITS = 16
"""Segments that a tick visits side by side: they wait for the tables, or for the same second."""
_CALLS = MOST_VISITS + 2
"""A root's first visit, and what goes on beside it, take a thread each."""

settings = Settings.from_environment()
telemetry = create_telemetry("tick")
clock = SystemClock()
entropy = SystemEntropy()
stores = open_stores(settings, clock)


def _on_bad_entry(segment: int, slot_key: str, entry_key: str, reason: str) -> None:
    where = {"segment": segment, "slot": slot_key, "entry": entry_key, "reason": reason}
    telemetry.record(Action.ENTRY_SET_ASIDE, logging.ERROR, **where)
    telemetry.measure(Metric.ENTRIES_SET_ASIDE)


in_use = segments_in_use(stores.wheel, settings.segments)
if in_use > settings.segments:
    telemetry.record(Action.SEGMENTS_LOWERED, logging.ERROR, set=settings.segments, used=in_use)
ports = TickPorts(
    jobs=stores.jobs,
    calendars=stores.calendars,
    wheel=stores.wheel,
    chunks=stores.chunks,
    indexer=Indexer.of(stores, clock),
    clock=clock,
    on_bad_entry=_on_bad_entry,
    tzdata=version("tzdata"),
    catch_up_share=max(1, settings.catch_up_per_minute // in_use),
    chunked=settings.chunks and not settings.owner_starts_per_minute,
    run_lifetime=settings.run_lifetime,
    side_by_side=SideBySideThreads(_CALLS),
)
canary = CanaryKeeper(stores.jobs, ports.indexer, clock, entropy, settings.segments)
invoker = Invoker(_CALLS)
spare_what_is_loaded()


def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Dispatch the segments of the root or of a share; fails if any of them failed."""
    now = clock.now()
    left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    deadline = now + left - timedelta(seconds=TICK_RESERVE_SECONDS)
    dispatcher = Dispatcher(
        ports,
        lease_owner=entropy.new_id(now),
        look_ahead_minutes=settings.look_ahead_minutes,
    )
    share = share_in(event)
    if share is None:
        reports = _be_root(dispatcher, context.invoked_function_arn, deadline)
    else:
        order = in_order(in_use, minute_of(now))
        reports = dispatcher.tick(*segments_of(order, share), deadline)
        _tell(reports, {"share": share.number, "of": share.of})
    failed = [report.segment for report in reports if report.outcome is SegmentOutcome.FAILED]
    if failed:
        raise StoreUnavailableError(f"segments {failed} are not completely dispatched")
    return {"messages": sum(report.messages for report in reports)}


def _be_root(dispatcher: Dispatcher, function_arn: str, deadline: datetime) -> list[SegmentReport]:
    """Do what is done once a minute."""
    root = Root(
        ports,
        dispatcher,
        partial(invoker.invite, function_arn),
        _on_uninvited,
        workers=settings.tick_workers,
        worth=Worth(),
    )
    reports = root.tick(in_use, deadline)
    is_shared = root.shares.of > 1
    _tell(reports, {"ticks": root.shares.of, "bound": root.shares.bound} if is_shared else {})
    change = change_of(reports, root.own, clock.now())
    if change is not None:
        telemetry.events_lost(stores.events.emit([change]))
    if clock.now() < deadline:
        _keep_canary()
    return reports


def _on_uninvited(share: Share, error: Exception) -> None:
    where = {"share": share.number, "of": share.of, "reason": reason_of(error)}
    telemetry.record(Action.SHARE_UNINVITED, logging.WARNING, **where)
    telemetry.measure(Metric.SHARES_UNINVITED)


def _keep_canary() -> None:
    try:
        if canary.keep():
            telemetry.record(Action.CANARY_FILED)
    except Exception as error:  # its silence is heard of; no job is late for it
        telemetry.failure(Action.CANARY_FAILED, error)


def _tell(reports: list[SegmentReport], shared: Mapping[str, object]) -> None:
    for report in reports:
        if report.outcome is SegmentOutcome.FAILED:
            details = {"segment": report.segment, "reason": report.reason}
            telemetry.record(Action.SEGMENT_FAILED, logging.ERROR, **details)
    messages = sum(report.messages for report in reports)
    migrated = sum(report.migrated for report in reports)
    lag_seconds = 60 * max((report.lag_minutes for report in reports), default=0)
    occurrences = sum(report.occurrences for report in reports)
    telemetry.measure(Metric.OCCURRENCES_SENT, occurrences)
    telemetry.measure(Metric.WATERMARK_LAG, lag_seconds)
    skew_seconds = stores.skew_seconds() or 0.0
    telemetry.measure(Metric.CLOCK_SKEW, abs(skew_seconds))
    if abs(skew_seconds) > SKEW_LIMIT_SECONDS:
        telemetry.record(Action.CLOCK_SKEWED, logging.ERROR, skew_seconds=skew_seconds)
    outcomes = Counter(report.outcome.value for report in reports)
    counts = {"messages": messages, "migrated": migrated, "lag_seconds": lag_seconds}
    telemetry.finish(Action.TICK_FINISHED, **shared, **counts, **outcomes)
