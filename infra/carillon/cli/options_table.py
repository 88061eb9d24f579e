"""The options of `jobs create` and `jobs change`, and defaults of a job's members.

`make options` writes this file.
"""

from typing import Any

from carillon.domain.spec.options import JobOption

# ruff: noqa: E501
# fmt: off
OPTIONS = (
    JobOption('schedule', '--schedule', 'list', '"17 * * * *", "every 25m", "at ...", or a JSON form; several are united.'),
    JobOption('except', '--except', 'list', 'Without the occurrences of this schedule; repeatable.'),
    JobOption('timezone', '--timezone', 'text', 'IANA time zone of the schedule.'),
    JobOption('start_at', '--start-at', 'text', "The schedule's start and anchor. ISO 8601; without an offset it is local time of the time zone given."),
    JobOption('end_at', '--end-at', 'text', 'The last instant that may fire. ISO 8601; without an offset it is local time of the time zone given.'),
    JobOption('max_runs', '--max-runs', 'int', 'End after so many occurrences.'),
    JobOption('dst.gap', '--dst-gap', 'text', 'Local times that the clocks skip: run_after or skip.'),
    JobOption('dst.fold', '--dst-fold', 'text', 'Local times shown twice: first, second or both.'),
    JobOption('after', '--after', 'text', 'Run after each run of another job: NAME, or NAME:WHEN (succeeded, the default, failed or finished); or JSON.', '', 'NAME[:WHEN]'),
    JobOption('window', '--window', 'text', 'Spread: start up to "15m" later, or "50%" of the interval.'),
    JobOption('calendar.name', '--calendar', 'text', 'The name of the calendar whose days are closed.'),
    JobOption('calendar.rule', '--calendar-rule', 'text', 'On closed days: skip, next_business_day or previous_business_day.'),
    JobOption('name', '--name', 'text', 'What you call the job.'),
    JobOption('description', '--description', 'text', 'What it is for, in your words.', 'Labels and events'),
    JobOption('target', '--target', 'text', '... or this: the ARN of a function, queue, topic or state machine; or JSON, which buses, ECS and Batch need.', 'What is called'),
    JobOption('payload', '--payload', 'text', 'JSON, @FILE, or @- for stdin.', 'What is called'),
    JobOption('template', '--template', 'bool', 'Whether the payload has {{placeholders}}.', 'What is called'),
    JobOption('priority', '--priority', 'text', 'high, normal or low.', 'Policies'),
    JobOption('catch_up', '--catch-up', 'text', 'What an outage of ticks or executors missed: skip, latest or all.', 'Policies'),
    JobOption('grace', '--grace', 'text', 'How late is not missed yet, as "5m"; 1 minute without.', 'Policies'),
    JobOption('overlap', '--overlap', 'text', 'While a run is active: allow, skip or queue_one.', 'Policies'),
    JobOption('tolerance', '--tolerance', 'text', 'Drop a run that starts sooner after the last one than the interval less this.', 'Policies'),
    JobOption('concurrency', '--concurrency', 'text', 'At most LIMIT runs at once of all jobs with the KEY.', 'Policies', 'KEY=LIMIT'),
    JobOption('rate', '--rate', 'text', 'At most LIMIT starts per duration, as 60/1m; of all jobs with the KEY, if any.', 'Policies', '[KEY=]LIMIT/PER'),
    JobOption('retry.max_attempts', '--max-attempts', 'int', 'Attempts before a dead letter.', 'Attempts'),
    JobOption('retry.backoff.base_seconds', '--backoff-base', 'int', 'The first delay, in seconds.', 'Attempts'),
    JobOption('retry.backoff.factor', '--backoff-factor', 'float', 'How much longer each next one is.', 'Attempts'),
    JobOption('retry.backoff.cap_seconds', '--backoff-cap', 'int', 'The longest delay, in seconds.', 'Attempts'),
    JobOption('retry.backoff.type', '--backoff', 'text', 'Between attempts: exponential (with jitter) or fixed.', 'Attempts'),
    JobOption('retry.retry_on', '--retry-on', 'list', 'Retry this kind of error only, as timeout or http_5xx; repeatable.', 'Attempts'),
    JobOption('timeout_seconds', '--timeout', 'int', 'Time limit of one attempt, in seconds.', 'Attempts'),
    JobOption('pause_after_failures', '--pause-after-failures', 'int', 'Pause the job after so many dead runs in a row.', 'Policies'),
    JobOption('expect_within', '--expect-within', 'text', 'Say when no success is recorded so long after a fire time, as "10m".', 'Policies'),
    JobOption('on_success', '--on-success', 'text', 'Call this when a run succeeds: a task, URL, ARN, or JSON.', 'What is called'),
    JobOption('on_failure', '--on-failure', 'text', 'Call this when a run is dead: a task, URL, ARN, or JSON.', 'What is called'),
    JobOption('events', '--event', 'list', 'Publish this event, as run.dead; repeatable.', 'Labels and events'),
    JobOption('result', '--result', 'text', 'Of a result keep its beginning, or full: up to 32 KB.', 'Attempts'),
    JobOption('on_complete', '--on-complete', 'text', 'When no occurrence is left: keep (the job) or delete.'),
    JobOption('initial_state', '--initial-state', 'text', 'active, or paused: it fires once it is resumed.'),
    JobOption('parent', '--parent', 'text', 'What the job belongs to; jobs can be chosen by it.', 'Labels and events'),
    JobOption('tags', '--tag', 'list', 'KEY=VALUE; repeatable.', 'Labels and events'),
)
DEFAULTS: dict[str, Any] = {'schedule': None, 'except': None, 'timezone': 'UTC', 'start_at': None, 'end_at': None, 'max_runs': None, 'dst': None, 'after': None, 'window': None, 'calendar': None, 'name': None, 'description': None, 'target': None, 'payload': None, 'template': False, 'priority': 'normal', 'catch_up': 'latest', 'grace': None, 'overlap': 'allow', 'tolerance': None, 'concurrency': None, 'rate': None, 'retry': {'max_attempts': 3, 'backoff': {'base_seconds': 2, 'factor': 2.0, 'cap_seconds': 3600, 'type': 'exponential'}, 'retry_on': []}, 'timeout_seconds': None, 'pause_after_failures': None, 'expect_within': None, 'on_success': None, 'on_failure': None, 'events': [], 'result': 'beginning', 'on_complete': 'keep', 'initial_state': 'active', 'parent': None, 'tags': {}}
