"""The checks of a deployment: pure functions of a snapshot, each with its advice."""

from collections.abc import Iterator, Sequence, Set

from carillon.cdk.releases import LIVE
from carillon.doctor.facts import FunctionFacts, MappingFacts, QueueFacts, Snapshot, Unknown
from carillon.doctor.verdicts import Level, Verdict, judged
from carillon.stores.ports import EXPIRY_ATTRIBUTE, SKEW_LIMIT_SECONDS

_UNRESERVED = 20
"""Places of concurrency beside the lanes: for the api and the consumer of dead letters."""
_VISIBILITY_FACTOR = 6
"""Visibility timeout over the function's timeout (Lambda: creating an SQS event source mapping)."""
_REVERT = "make deploy OPTIONS=--revert-drift, beside the options that it was deployed with"
"""Without it a deployment leaves alone what the template has not changed."""
_RELEASE = f"carillon admin release RELEASE makes one of them live; or {_REVERT}"
_RESTORE = "docs/reliability.md has the way to restore tables together"
_NO_ZONES = "/none"
_SECRET_CHARACTERS = 24
"""Standard Webhooks asks for keys of 24 bytes at least."""


def concurrency(seen: Snapshot) -> Iterator[Verdict]:
    """Of the lanes and the api: beside what this and all other functions keep for themselves."""
    limits = [each.max_concurrency or 0 for each in seen.known_mappings]
    needed = sum(limits) + _UNRESERVED
    hidden = [each for each in (seen.unreserved, *seen.mappings) if isinstance(each, Unknown)]
    if hidden or isinstance(seen.unreserved, Unknown):
        yield Verdict("concurrency", Level.UNKNOWN, hidden[0].reason)
        return
    left = f"{seen.unreserved} places of the account are reserved for no function"
    yield judged(
        "concurrency",
        f"{left}, {needed} may be needed" if seen.unreserved < needed else "",
        f"{left}, of which lanes and api need up to {needed}",
        "ask for a higher quota (Service Quotas, Lambda, concurrent executions), or deploy with"
        " smaller `lanes`",
    )


def ticks_own(seen: Snapshot) -> Iterator[Verdict]:
    name, workers = "tick's own concurrency", seen.settings.tick_workers
    for each in seen.functions_of("tick"):
        if isinstance(each.reserved, Unknown):
            yield Verdict(name, Level.UNKNOWN, each.reserved.reason)
        elif each.reserved is None:
            text = "ticks share the account's concurrency with every other function"
            advice = (
                "deploy with -c tick_reserved_concurrency=true, if the quota allows it; and with"
                " --revert-drift, if it was so already"
            )
            yield Verdict(name, Level.ADVICE, text, advice)
        elif each.reserved < workers:
            text = f"{each.reserved} places for {workers} ticks that may share a minute"
            command = f"aws lambda delete-function-concurrency --function-name {each.name}"
            yield Verdict(name, Level.WRONG, text, f"at once: {command}; then {_REVERT}")
        else:
            yield Verdict(name, Level.OK, f"{each.reserved} places")


def functions(seen: Snapshot) -> Iterator[Verdict]:
    missing = {"tick", "api", "executor", "dead-letter-consumer"}
    missing -= {each.service for each in seen.functions}
    for service in sorted(missing):
        yield Verdict("functions", Level.WRONG, f"there is no {service}", _REVERT)
    inactive = [f"{each.name} is {each.state}" for each in seen.functions if each.state != "Active"]
    text = "; ".join(inactive)
    fine = f"{len(seen.functions)} are active"
    yield judged("functions", text, fine, "wait a minute, or invoke it and read the error")
    yield _release({each.release for each in seen.functions})


def _release(live: Set[str]) -> Verdict:
    """Two of them may differ in nothing but options, or in the layer."""
    if not any(live):
        return Verdict("release", Level.UNKNOWN, "no live version names its release")
    names = ", ".join(sorted(each or "one without a name" for each in live))
    mixed = f"{len(live)} different ones are live: {names}" if len(live) > 1 else ""
    return judged("release", mixed, f"all functions run {names}", _RELEASE)


def time_zones(seen: Snapshot) -> Iterator[Verdict]:
    """All functions must have one time zone database: the one in their layer."""
    layers = {tuple(each.layers) for each in seen.functions}
    versions = {
        each.tzdata for each in seen.controls.values() if each and not isinstance(each, Unknown)
    } - {""}
    told = " and ".join(sorted(versions)) or "no tick has recorded its version yet"
    mixed = "" if len(layers) == 1 else f"functions have {len(layers)} different sets of layers"
    yield judged("tzdata", mixed, f"one layer for all functions; ticks: {told}", _RELEASE)
    others = [
        each.name for each in seen.functions if each.variables.get("PYTHONTZPATH") != _NO_ZONES
    ]
    yield judged(
        "PYTHONTZPATH",
        f"{', '.join(others)}: zones may come from the runtime's files" if others else "",
        "zones come from the layer only",
        f"it must be {_NO_ZONES}: {_REVERT}",
    )


def recursion(seen: Snapshot) -> Iterator[Verdict]:
    """Lambda cuts chains of messages to a function's own queue after 16 of them."""
    for each in seen.functions:
        loops = each.service in ("executor", "dead-letter-consumer")
        wanted = "Allow" if loops else "Terminate"
        if isinstance(each.recursive_loop, Unknown):
            yield Verdict(f"recursion: {each.name}", Level.UNKNOWN, each.recursive_loop.reason)
        else:
            wrong = f"RecursiveLoop is {each.recursive_loop}, not {wanted}"
            yield judged(
                f"recursion: {each.name}",
                wrong if each.recursive_loop != wanted else "",
                wanted,
                f"fixed delays and waits end after 16 messages: {_REVERT}" if loops else _REVERT,
            )


def mappings(seen: Snapshot) -> Iterator[Verdict]:
    hidden = [each for each in seen.mappings if isinstance(each, Unknown)]
    for queue in seen.queues:
        if isinstance(queue, Unknown):
            yield _unread("queue", queue, _REVERT)
            continue
        found = [each for each in seen.known_mappings if each.queue_arn == queue.arn]
        name = queue.arn.rpartition(":")[2]
        if hidden and not found:
            yield Verdict(f"mapping: {name}", Level.UNKNOWN, hidden[0].reason)
            continue
        is_lane = queue.url in seen.settings.lane_queues.values()
        wrong, advice = _drift_of(found, is_lane)
        yield judged(f"mapping: {name}", wrong, "enabled", advice)
        yield from _visibility(seen, queue, [each.function for each in found])


def _drift_of(found: Sequence[MappingFacts], is_lane: bool) -> tuple[str, str]:
    """The fault of a queue's mappings, and its remedy; "" twice for none."""
    update = "aws lambda update-event-source-mapping --uuid"
    off = [each for each in found if each.state != "Enabled"]
    if off or not found:
        states = ", ".join(each.state for each in found) or "none"
        command = f"{update} {off[0].uuid} --enabled" if off else _REVERT
        told = f"event source mappings of the queue: {states}"
        return told, f"nothing is taken from the queue: {command}"
    one = found[0]
    if one.qualifier != LIVE:
        command = f"{update} {one.uuid} --function-name {one.function}:{LIVE}"
        return f"it calls {one.qualifier or '$LATEST'}, not {LIVE}", command
    if is_lane and one.max_concurrency is None:
        return "the lane has no maximum concurrency", f"it may take all places: {_REVERT}"
    if not is_lane and one.max_concurrency is not None:
        return f"it has a maximum concurrency: {one.max_concurrency}", f"its polls cost: {_REVERT}"
    return "", ""


def _visibility(seen: Snapshot, queue: QueueFacts, names: Sequence[str]) -> Iterator[Verdict]:
    served: list[FunctionFacts] = [each for each in seen.functions if each.name in names]
    least = _VISIBILITY_FACTOR * max((each.timeout_seconds for each in served), default=0)
    wrong = f"{queue.visibility_seconds} s, less than six times the function's timeout: {least} s"
    yield judged(
        f"visibility: {queue.arn.rpartition(':')[2]}",
        wrong if queue.visibility_seconds < least else "",
        f"{queue.visibility_seconds} s",
        f"runs are taken over while they are under way: {_REVERT}",
    )


def depths(seen: Snapshot) -> Iterator[Verdict]:
    lanes = set(seen.settings.lane_queues.values())
    for queue in seen.queues:
        if isinstance(queue, Unknown) or queue.url in lanes:
            continue
        age = queue.oldest_seconds
        aged = "their age is not known here" if isinstance(age, Unknown) else f"oldest {age} s old"
        yield judged(
            "dead-letter queue",
            f"{queue.messages} messages, {aged}" if queue.messages else "",
            "empty",
            "look for the consumer's errors in its log",
        )


def clock(seen: Snapshot) -> Iterator[Verdict]:
    hidden = [each for each in seen.rules if isinstance(each, Unknown)]
    if hidden:
        yield _unread("rule", hidden[0], "")
        return
    rules = [each for each in seen.rules if not isinstance(each, Unknown)]
    enabled = [each for each in rules if each.enabled]
    yield judged(
        "rule",
        "" if enabled else "no rule is enabled: no tick comes",
        f"{enabled[0].name} is enabled" if enabled else "",
        f"aws events enable-rule --name {rules[0].name}" if rules else _REVERT,
    )
    targets = sum(each.targets for each in enabled)
    if enabled:
        wrong = f"the rule calls {targets} ticks a minute, one is expected: it invites others"
        fine = "the rule calls one a minute"
        yield judged("root tick", wrong if targets != 1 else "", fine, _REVERT)


def skew(seen: Snapshot) -> Iterator[Verdict]:
    if seen.skew_seconds is None:
        yield Verdict("clock of this machine", Level.UNKNOWN, "no answer had the database's time")
        return
    off = abs(seen.skew_seconds) > SKEW_LIMIT_SECONDS
    yield judged(
        "clock of this machine",
        f"{seen.skew_seconds:+.1f} s from the database's" if off else "",
        "within two seconds of the database's",
        "set it: figures of ticks below are off by as much",
    )


def tables(seen: Snapshot) -> Iterator[Verdict]:
    for role, table in seen.tables.items():
        if isinstance(table, Unknown):
            yield _unread(f"table {role}", table, _RESTORE)
            continue
        wrong = f"{table.name} is {table.status}" if table.status != "ACTIVE" else ""
        yield judged(f"table {role}", wrong, "active", "check it in the console")
        yield _expiry(role, table.expires_by)
        if isinstance(table.recovers, Unknown):
            yield Verdict(f"recovery of {role}", Level.UNKNOWN, table.recovers.reason)
        elif role == "runs":
            text = "on" if table.recovers else "off: history is not recovered (`recover_runs`)"
            yield Verdict(f"recovery of {role}", Level.OK, text)
        else:
            wrong = "" if table.recovers else "point-in-time recovery is off"
            yield judged(f"recovery of {role}", wrong, "on", f"switch it on, or {_REVERT}")


def _expiry(role: str, expires_by: str | Unknown) -> Verdict:
    if isinstance(expires_by, Unknown):
        return Verdict(f"expiry of {role}", Level.UNKNOWN, expires_by.reason)
    is_on = expires_by == EXPIRY_ATTRIBUTE
    wrong = "" if is_on else f"TTL is {expires_by or 'off'}, not {EXPIRY_ATTRIBUTE}"
    return judged(f"expiry of {role}", wrong, "on", f"nothing leaves the table: {_REVERT}")


def alarms(seen: Snapshot) -> Iterator[Verdict]:
    if isinstance(seen.alarms, Unknown):
        yield _unread("alarms", seen.alarms, "")
        return
    if not seen.alarms:
        yield Verdict("alarms", Level.WRONG, "there is none", _REVERT)
        return
    raised = [each.name for each in seen.alarms if each.state == "ALARM"]
    yield judged(
        "alarms raised", ", ".join(raised), "none", "docs/operate.md has a heading for each"
    )
    mute = [each.name for each in seen.alarms if not (each.actions and each.enabled)]
    told = f"{len(seen.alarms)} alarms notify somebody"
    if len(mute) == len(seen.alarms):
        advice = "deploy with -c alarm_email=... or -c alarm_topic=..."
        yield Verdict("alarm actions", Level.ADVICE, "alarms notify nobody", advice)
    else:
        advice = f"aws cloudwatch enable-alarm-actions, or {_REVERT}"
        yield judged("alarm actions", f"mute: {', '.join(mute)}" if mute else "", told, advice)


def secret(seen: Snapshot) -> Iterator[Verdict]:
    name, advice = "signing secret", "put a text of 24 characters or more into the secret"
    if isinstance(seen.secret, Unknown):
        yield _unread(name, seen.secret, advice)
    else:
        wrong = f"it has {len(seen.secret)} characters"
        is_short = len(seen.secret) < _SECRET_CHARACTERS
        yield judged(name, wrong if is_short else "", "readable", advice)


def _unread(check: str, fact: Unknown, advice: str) -> Verdict:
    """The verdict on what is not there, or cannot be known with these credentials."""
    level, remedy = (Level.WRONG, advice) if fact.is_absent else (Level.UNKNOWN, "")
    return Verdict(check, level, f"it cannot be read: {fact.reason}", remedy)
