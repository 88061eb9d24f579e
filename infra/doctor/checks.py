"""What is asked of a deployment: pure functions of a snapshot, each with its advice."""

from collections.abc import Iterator, Sequence

from infra.doctor.facts import FunctionFacts, QueueFacts, Snapshot, Unknown
from infra.doctor.verdicts import Level, Verdict, judged

_UNRESERVED = 20
"""Places of concurrency beside lanes and ticks: for the api and the consumer of dead letters."""
_VISIBILITY_FACTOR = 6
"""Visibility timeout over the function's timeout (Lambda: creating an SQS event source mapping)."""
_NO_ZONES = "/none"
_SECRET_CHARACTERS = 24
"""Standard Webhooks asks for keys of 24 bytes at least."""


def concurrency(seen: Snapshot) -> Iterator[Verdict]:
    lanes = sum(each.max_concurrency or 0 for each in seen.mappings)
    own = [each.reserved for each in seen.functions_of("tick")]
    reserved = sum(each for each in own if isinstance(each, int))
    needed = lanes + reserved + _UNRESERVED
    if isinstance(seen.concurrency, Unknown):
        yield Verdict("concurrency", Level.UNKNOWN, seen.concurrency.reason)
    else:
        enough = seen.concurrency >= needed
        yield judged(
            "concurrency",
            "" if enough else f"the account has {seen.concurrency} places, {needed} may be needed",
            f"{seen.concurrency} places, of which lanes, ticks and api need up to {needed}",
            "ask for a higher quota (Service Quotas, Lambda, concurrent executions), or deploy with"
            " smaller `lanes`",
        )
    for each in own:
        if isinstance(each, Unknown):
            yield Verdict("tick's own concurrency", Level.UNKNOWN, each.reason)
        elif each is None:
            text = "ticks share the account's concurrency with every other function"
            advice = "deploy with -c tick_reserved_concurrency=true, if the quota allows it"
            yield Verdict("tick's own concurrency", Level.ADVICE, text, advice)
        elif each < seen.settings.tick_workers:
            text = f"{each} places for {seen.settings.tick_workers} workers"
            yield Verdict("tick's own concurrency", Level.WRONG, text, "deploy again")
        else:
            yield Verdict("tick's own concurrency", Level.OK, f"{each} places")


def functions(seen: Snapshot) -> Iterator[Verdict]:
    missing = {"tick", "api", "executor", "dead-letter-consumer"}
    missing -= {each.service for each in seen.functions}
    for service in sorted(missing):
        yield Verdict("functions", Level.WRONG, f"there is no {service}", "deploy again")
    inactive = [f"{each.name} is {each.state}" for each in seen.functions if each.state != "Active"]
    text = "; ".join(inactive)
    fine = f"{len(seen.functions)} are active"
    yield judged("functions", text, fine, "wait a minute, or invoke it and read the error")
    releases = {each.code for each in seen.functions}
    mixed = "" if len(releases) == 1 else f"{len(releases)} different codes are live"
    yield judged(
        "release",
        mixed,
        "all functions run the same code",
        "a deployment or rollback stopped half-way: do it again",
    )


def time_zones(seen: Snapshot) -> Iterator[Verdict]:
    """All functions must have one time zone database: the one in their layer."""
    layers = {tuple(each.layers) for each in seen.functions}
    versions = {
        each.tzdata for each in seen.controls.values() if each and not isinstance(each, Unknown)
    } - {""}
    told = " and ".join(sorted(versions)) or "no tick has told its version yet"
    mixed = "" if len(layers) == 1 else f"functions have {len(layers)} different sets of layers"
    yield judged("tzdata", mixed, f"one layer for all functions; ticks: {told}", "deploy again")
    others = [
        each.name for each in seen.functions if each.variables.get("PYTHONTZPATH") != _NO_ZONES
    ]
    yield judged(
        "PYTHONTZPATH",
        f"{', '.join(others)}: zones may come from the runtime's files" if others else "",
        "zones come from the layer only",
        f"deploy again: it must be {_NO_ZONES}",
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
                "fixed delays and waits end after 16 messages: deploy again"
                if loops
                else "deploy again",
            )


def mappings(seen: Snapshot) -> Iterator[Verdict]:
    for queue in seen.queues:
        found = [each for each in seen.mappings if each.queue_arn == queue.arn]
        name = queue.arn.rpartition(":")[2]
        states = ", ".join(each.state for each in found) or "none"
        is_fine = [each.state for each in found] == ["Enabled"]
        yield judged(
            f"mapping: {name}",
            "" if is_fine else f"event source mappings of the queue: {states}",
            "enabled",
            "nothing is taken from the queue: aws lambda update-event-source-mapping --enabled"
            if found
            else "deploy again",
        )
        yield from _visibility(seen, queue, [each.function for each in found])


def _visibility(seen: Snapshot, queue: QueueFacts, names: Sequence[str]) -> Iterator[Verdict]:
    served: list[FunctionFacts] = [each for each in seen.functions if each.name in names]
    least = _VISIBILITY_FACTOR * max((each.timeout_seconds for each in served), default=0)
    wrong = f"{queue.visibility_seconds} s, less than six times the function's timeout: {least} s"
    yield judged(
        f"visibility: {queue.arn.rpartition(':')[2]}",
        wrong if queue.visibility_seconds < least else "",
        f"{queue.visibility_seconds} s",
        "runs are taken over while they are under way: deploy again",
    )


def depths(seen: Snapshot) -> Iterator[Verdict]:
    lanes = set(seen.settings.lane_queues.values())
    for queue in seen.queues:
        if queue.url in lanes:
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
    workers = seen.settings.tick_workers
    enabled = [each for each in seen.rules if each.enabled]
    yield judged(
        "rule",
        "" if enabled else "no rule is enabled: no tick comes",
        f"{enabled[0].name} is enabled" if enabled else "",
        "aws events enable-rule --name "
        + (seen.rules[0].name if seen.rules else "...: there is none; deploy again"),
    )
    targets = sum(each.targets for each in enabled)
    if enabled:
        wrong = f"the rule calls {targets} ticks, {workers} workers are expected"
        fine = f"the rule calls {workers} a minute"
        yield judged("tick workers", wrong if targets != workers else "", fine, "deploy again")


def skew(seen: Snapshot) -> Iterator[Verdict]:
    if seen.skew_seconds is None:
        yield Verdict("clock of this machine", Level.UNKNOWN, "no answer told the database's time")
        return
    off = abs(seen.skew_seconds) > 2
    yield judged(
        "clock of this machine",
        f"{seen.skew_seconds:+.1f} s from the database's" if off else "",
        "within two seconds of the database's",
        "set it: figures of ticks below are off by as much",
    )


def tables(seen: Snapshot) -> Iterator[Verdict]:
    for role, table in seen.tables.items():
        wrong = f"{table.name} is {table.status}" if table.status != "ACTIVE" else ""
        yield judged(f"table {role}", wrong, "active", "look at it in the console")
        yield _expiry(role, table.expires_by)
        if isinstance(table.recovers, Unknown):
            yield Verdict(f"recovery of {role}", Level.UNKNOWN, table.recovers.reason)
        elif role == "runs":
            text = "on" if table.recovers else "off: history is not recovered (`recover_runs`)"
            yield Verdict(f"recovery of {role}", Level.OK, text)
        else:
            wrong = "" if table.recovers else "point-in-time recovery is off"
            yield judged(f"recovery of {role}", wrong, "on", "deploy again, or switch it on")


def _expiry(role: str, expires_by: str | Unknown) -> Verdict:
    if isinstance(expires_by, Unknown):
        return Verdict(f"expiry of {role}", Level.UNKNOWN, expires_by.reason)
    wrong = "" if expires_by == "expires_at" else f"TTL is {expires_by or 'off'}, not expires_at"
    return judged(f"expiry of {role}", wrong, "on", "nothing leaves the table: deploy again")


def alarms(seen: Snapshot) -> Iterator[Verdict]:
    if not seen.alarms:
        yield Verdict("alarms", Level.WRONG, "there is none", "deploy again")
        return
    raised = [each.name for each in seen.alarms if each.state == "ALARM"]
    yield judged(
        "alarms raised", ", ".join(raised), "none", "docs/operate.md has a heading for each"
    )
    mute = [each.name for each in seen.alarms if not (each.actions and each.enabled)]
    told = f"{len(seen.alarms)} alarms tell somebody"
    if len(mute) == len(seen.alarms):
        advice = "deploy with -c alarm_email=... or -c alarm_topic=..."
        yield Verdict("alarm actions", Level.ADVICE, "alarms notify nobody", advice)
    else:
        advice = "deploy again, or aws cloudwatch enable-alarm-actions"
        yield judged("alarm actions", f"mute: {', '.join(mute)}" if mute else "", told, advice)


def secret(seen: Snapshot) -> Iterator[Verdict]:
    name, advice = "signing secret", "put a text of 24 characters or more into the secret"
    if isinstance(seen.secret, Unknown):
        yield Verdict(name, Level.WRONG, f"it cannot be read: {seen.secret.reason}", advice)
    else:
        wrong = f"it has {len(seen.secret)} characters"
        is_short = len(seen.secret) < _SECRET_CHARACTERS
        yield judged(name, wrong if is_short else "", "readable", advice)
