"""The cost of a deployment: lines, prices, and a model of one fire and of an idle month.

The lines and their prices are the only ones there are: `make bench-cost` prices by them what it
counts at the client, `carillon simulate` what it counts at the ports, `carillon preview` what the
model yields. Prices are those of us-east-1, on demand, arm64, without free tiers and taxes. No line
has the targets' own cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

READ_UNIT_BYTES = 4096
WRITE_UNIT_BYTES = 1024
QUEUE_UNIT_BYTES = 64 * 1024
ROW_OVERHEAD_BYTES = 100
"""Of storage, for each row (DynamoDB Developer Guide, "item sizes and formats")."""
EVENT_OVERHEAD_BYTES = 26
"""Of each log event (CloudWatch Logs API, PutLogEvents)."""
GB = 1e9
MONTH_MINUTES = 30 * 24 * 60

VCPU_MB = 1769
"""The memory with which a function has a whole processor (Lambda: memory and computing power)."""
BARE_REQUEST_CPU_SECONDS = 0.00068
"""The processor time that botocore takes to put a small item over plain HTTP on the model's machine
(measured 2026-11-21). Another machine's times are put in proportion to its own."""
GRAVITON_SPEED = 0.5
"""A core of Lambda's over one of that machine: an assumption, on the safe side."""
CALL_SECONDS = 0.005
"""A request's way to DynamoDB or SQS and back, waited for where nothing else is to be done."""


class Line(StrEnum):
    """The lines of the bill, and in what they are counted."""

    WRITES = "writes"  # write units
    READS = "reads"  # read units
    QUEUE = "sqs"  # requests that carry messages
    FAIR_QUEUE = "sqs fair queues"  # the same requests
    EMPTY_RECEIVES = "sqs empty receives"  # requests
    INVOCATIONS = "lambda requests"
    WAITING = "lambda waiting"  # GB-s
    WORK = "lambda work"  # GB-s
    API = "api requests"
    LOGS = "logs"  # GB
    STORAGE = "storage"  # GB and month
    RECOVERY = "recovery"  # GB and month
    METRICS = "metrics"  # a month
    ALARMS = "alarms"  # a month
    DASHBOARDS = "dashboards"  # a month
    SECRETS = "secrets"  # a month


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for `per` of a line, and the page of AWS that states it."""

    dollars: float
    per: float
    unit: str
    source: str


_M = 1_000_000
PRICES: Mapping[Line, Price] = {
    Line.WRITES: Price(0.625, _M, "write units", "dynamodb/pricing/on-demand"),
    Line.READS: Price(0.125, _M, "read units", "dynamodb/pricing/on-demand"),
    Line.QUEUE: Price(0.40, _M, "requests", "sqs/pricing, standard queues"),
    Line.FAIR_QUEUE: Price(
        0.10, _M, "requests", "sqs/pricing, fair queues, as cloudburn.io reports of 2026-03"
    ),
    Line.EMPTY_RECEIVES: Price(0.40, _M, "requests", "sqs/pricing, standard queues"),
    Line.INVOCATIONS: Price(0.20, _M, "requests", "lambda/pricing"),
    Line.WAITING: Price(0.0000133334, 1, "GB-s", "lambda/pricing, arm64"),
    Line.WORK: Price(0.0000133334, 1, "GB-s", "lambda/pricing, arm64"),
    Line.API: Price(1.00, _M, "requests", "api-gateway/pricing, HTTP APIs"),
    Line.LOGS: Price(0.53, 1, "GB", "cloudwatch/pricing: 0.50 taken in, 0.03 kept for a month"),
    Line.STORAGE: Price(0.25, 1, "GB-months", "dynamodb/pricing/on-demand"),
    Line.RECOVERY: Price(0.20, 1, "GB-months", "dynamodb/pricing/on-demand, continuous backups"),
    Line.METRICS: Price(0.30, 1, "metrics", "cloudwatch/pricing"),
    Line.ALARMS: Price(0.10, 1, "alarms", "cloudwatch/pricing"),
    Line.DASHBOARDS: Price(3.00, 1, "dashboards", "cloudwatch/pricing"),
    Line.SECRETS: Price(0.40, 1, "secrets", "secrets-manager/pricing"),
}
"""Pages below aws.amazon.com/, us-east-1, as known in 2026-11: no page was within reach when this
table was written. Compare it before you rely on a cent."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The amount of each line; a line that is not named is 0."""

    amounts: Mapping[Line, float]

    def __add__(self, other: "Usage") -> "Usage":
        lines = {**self.amounts, **other.amounts}
        return Usage({line: self.of(line) + other.of(line) for line in lines})

    def __mul__(self, times: float) -> "Usage":
        return Usage({line: times * amount for line, amount in self.amounts.items()})

    def __sub__(self, other: "Usage") -> "Usage":
        return self + other * -1

    def of(self, line: Line) -> float:
        return self.amounts.get(line, 0.0)

    @property
    def dollars_by_line(self) -> dict[Line, float]:
        """In the order of the lines, without those that cost nothing."""
        return {
            line: self.of(line) * PRICES[line].dollars / PRICES[line].per
            for line in Line
            if self.of(line)
        }

    @property
    def dollars(self) -> float:
        return sum(self.dollars_by_line.values())


NOTHING = Usage({})


def write_units(row_bytes: int) -> int:
    """Of one write of a row to its table: one for each begun KiB, one at least."""
    return max(1, -(-row_bytes // WRITE_UNIT_BYTES))


def read_units(summed_bytes: int) -> int:
    """Of a strongly consistent get or query of so many bytes: one for each begun 4 KiB."""
    return max(1, -(-summed_bytes // READ_UNIT_BYTES))


def queue_units(summed_bytes: int) -> int:
    """Of one request with bodies of so many bytes: one for each begun 64 KiB."""
    return max(1, -(-summed_bytes // QUEUE_UNIT_BYTES))


def carried(requests: float) -> Usage:
    """SQS requests with messages of fair queues."""
    return Usage({Line.QUEUE: requests, Line.FAIR_QUEUE: requests})


def worked(cpu_seconds: float, memory_mb: int) -> Usage:
    """The billed GB-seconds of this much processor time on the model's machine."""
    billed_seconds = cpu_seconds / min(1.0, memory_mb / VCPU_MB) / GRAVITON_SPEED
    return Usage({Line.WORK: billed_seconds * memory_mb / 1024})


def lasted(line: Line, seconds: float, memory_mb: int) -> Usage:
    """The billed GB-seconds of an invocation that lasts this long."""
    return Usage({line: seconds * memory_mb / 1024})


def logged(line_bytes: float, events: float) -> Usage:
    return Usage({Line.LOGS: (line_bytes + events * EVENT_OVERHEAD_BYTES) / GB})


def kept(row_bytes: float, days: float, *, recovery: bool) -> Usage:
    """A row that is stored for this many days."""
    gb_months = (row_bytes + ROW_OVERHEAD_BYTES) / GB * days / 30
    return Usage({Line.STORAGE: gb_months, Line.RECOVERY: gb_months if recovery else 0.0})


@dataclass(frozen=True, slots=True)
class Deployment:
    """The properties of a deployment that its price depends on. The defaults are those of the
    options; a test compares the numbers of resources with the template."""

    segments: int = 4
    memory_mb: int = 512
    run_retention_days: int = 30
    recover_runs: bool = False
    lanes: int = 4
    dead_letter_queues: int = 1
    alarms: int = 28
    metrics: int = 7
    dashboards: int = 1
    secrets: int = 1


DEFAULT = Deployment()

BUSY_POLLERS = 5
IDLE_POLLERS = 2
POLLS_PER_MINUTE = 3
"""Of an empty queue by Lambda: long polls of 20 s, five side by side where a maximum concurrency is
set, else as few as two (Lambda: scaling behavior for SQS event source mappings)."""

IDLE_WRITES = 2
IDLE_READS = 4
"""Of a visit of a tick to a segment where nothing is due: the lease taken and freed; its control
item, and the three slots of the minute."""
BATCH = 10
RUN_WRITES = 2
RUN_READS = 1
"""Of a run that succeeds at once: claim and finish; the job's row. Its schedule writes nothing."""
RUN_ROW_BYTES = 220
ENTRY_BYTES = 133

RUN_CALLS = RUN_WRITES + RUN_READS
INVOCATION_CPU_SECONDS = 0.0025
RUN_CPU_SECONDS = 0.0012
CALL_CPU_SECONDS = 0.0009
MESSAGE_CPU_SECONDS = 0.0002
"""Processor time of the model's machine: of an invocation as such, of a run besides its
requests (the child's included), of a request, of a message that a tick sends."""
BATCH_WAIT_SECONDS = 0.03
BATCH_LOG_BYTES = 430
TICK_LOG_BYTES = 490
LOG_EVENTS = 1
"""The time that a batch waits for its second, and the bytes that invocations log: one line, with
their metrics. `make bench-cost` measures and prints all of these (docs/cost.md)."""


def fires(count: float, batch: int = BATCH, deployment: Deployment = DEFAULT) -> Usage:
    """Of recurring fires that call a task and succeed, received `batch` at a time.

    What there is however little fires, the ticks for instance, is `idle`'s.
    """
    memory_mb = deployment.memory_mb
    one = Usage({Line.WRITES: RUN_WRITES, Line.READS: RUN_READS + ENTRY_BYTES / READ_UNIT_BYTES})
    one += kept(RUN_ROW_BYTES, deployment.run_retention_days, recovery=deployment.recover_runs)
    one += carried(1 / BATCH) + runs_worked(1, memory_mb) + sends_worked(1, memory_mb)
    invocation = received(1, 1 / batch, memory_mb)
    waited = lasted(Line.WAITING, BATCH_WAIT_SECONDS / batch, memory_mb)
    return (one + invocation + waited) * count


def received(runs: float, invocations: float, memory_mb: int) -> Usage:
    """Invocations of executors as such: messages received and deleted, work, and logs.

    While a thread waits for an answer the others work: the fuller a batch, the less is waited.
    """
    usage = carried(2 * invocations) + invoked(invocations, BATCH_LOG_BYTES, memory_mb)
    waits_seconds = RUN_CALLS * CALL_SECONDS * invocations**2 / runs if runs else 0.0
    return usage + lasted(Line.WORK, waits_seconds, memory_mb)


def invoked(invocations: float, log_bytes: float, memory_mb: int) -> Usage:
    usage = Usage({Line.INVOCATIONS: invocations})
    usage += worked(INVOCATION_CPU_SECONDS * invocations, memory_mb)
    return usage + logged(log_bytes, LOG_EVENTS) * invocations


def runs_worked(runs: float, memory_mb: int) -> Usage:
    """The processor time of runs that succeed at once."""
    return worked((RUN_CPU_SECONDS + RUN_CALLS * CALL_CPU_SECONDS) * runs, memory_mb)


def sends_worked(messages: float, memory_mb: int) -> Usage:
    """The processor time of messages that a tick sends ten at a time."""
    return worked((MESSAGE_CPU_SECONDS + CALL_CPU_SECONDS / BATCH) * messages, memory_mb)


def idle(minutes: float, deployment: Deployment = DEFAULT) -> Usage:
    """Minutes in which nothing is due: the ticks, and the fixed costs."""
    d = deployment
    calls = IDLE_WRITES + IDLE_READS
    tick = Usage({Line.WRITES: d.segments * IDLE_WRITES, Line.READS: d.segments * IDLE_READS})
    tick += invoked(1, TICK_LOG_BYTES, d.memory_mb)
    tick += worked(d.segments * calls * CALL_CPU_SECONDS, d.memory_mb)
    # Segments are visited side by side.
    tick += lasted(Line.WORK, calls * CALL_SECONDS / d.segments, d.memory_mb)
    return tick * minutes + standing(minutes, deployment)


def standing(minutes: float, deployment: Deployment = DEFAULT) -> Usage:
    """Charges without any request of ours: polls of empty queues, and monthly prices."""
    d = deployment
    pollers = d.lanes * BUSY_POLLERS + d.dead_letter_queues * IDLE_POLLERS
    month = {
        Line.METRICS: d.metrics,
        Line.ALARMS: d.alarms,
        Line.DASHBOARDS: d.dashboards,
        Line.SECRETS: d.secrets,
    }
    polls = Usage({Line.EMPTY_RECEIVES: POLLS_PER_MINUTE * pollers * minutes})
    return polls + Usage(month) * (minutes / MONTH_MINUTES)


def dollars_of_fires(count: int) -> float:
    """US dollars at most for this many fires that succeed at once, without the target's own cost:
    each in a batch of its own, sent just before a whole second (docs/cost.md)."""
    return fires(count, 1).dollars
