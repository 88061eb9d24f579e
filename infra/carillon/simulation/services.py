"""The API without HTTP: the services of carillon.api over a simulated deployment."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, cast

from carillon.api.apply.service import ApplyService
from carillon.api.calendars.service import CalendarService
from carillon.api.jobs.service import JobService
from carillon.api.operations.service import OperationService
from carillon.api.runs.completions import CompletionService
from carillon.api.runs.dead_letters import DeadLetterService
from carillon.api.runs.service import RunService
from carillon.domain.job import Lane
from carillon.domain.spec.job_spec import JobSpec
from carillon.services.history import History
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import Quotas
from carillon.services.redrive import Redriver
from carillon.settings import Settings
from carillon.simulation.deployment import Deployment, Options
from carillon.telemetry import Telemetry


class _NoTelemetry:
    """Nobody reads the logs of a simulation."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **details: None


@dataclass(frozen=True, slots=True)
class Api:
    """The services; each request is to be a process of its own (`Deployment.invoke`)."""

    jobs: JobService
    calendars: CalendarService
    applying: ApplyService
    runs: RunService
    dead_letters: DeadLetterService
    operations: OperationService
    completions: CompletionService

    @classmethod
    def of(cls, deployment: Deployment) -> "Api":
        ports, settings = deployment.stores.ports, settings_of(deployment.options)
        clock, entropy, indexer = deployment.clock, deployment.entropy, deployment.indexer
        telemetry = cast(Telemetry, _NoTelemetry())
        # Whatever waits for another thread would stop the simulation.
        quotas = JobQuotas(
            Quotas(settings.limits), ports.jobs, ports.uses, clock, entropy, turn=nullcontext()
        )
        jobs = JobService(ports, indexer, quotas, clock, entropy, settings, telemetry)
        history = History.of(ports, clock, settings.run_lifetime)
        redriver = Redriver(ports.runs, indexer, clock, entropy, settings.run_lifetime)
        calendars = CalendarService(jobs, ports.calendars, ports.changes, clock)
        return cls(
            jobs,
            calendars,
            ApplyService(jobs, calendars, clock, threads=1),
            RunService(
                jobs,
                ports.runs,
                history,
                ports.queue,
                clock,
                entropy,
                settings,
                ports.idempotency_records,
            ),
            DeadLetterService(jobs, ports.notifications, history, redriver, clock),
            OperationService(
                jobs,
                ports.calendars,
                history,
                ports.operations,
                ports.idempotency_records,
                indexer,
                clock,
                entropy,
                settings,
            ),
            CompletionService(ports.jobs, ports.runs, indexer, clock, entropy),
        )


def job_body(document: Mapping[str, Any]) -> JobSpec:
    """A body of POST /jobs; raises pydantic.ValidationError."""
    return JobSpec.model_validate_json(json.dumps(document))


def settings_of(options: Options) -> Settings:
    """The settings of a deployment with these options; none of its resources exists."""
    return Settings(
        jobs_table="jobs",
        wheel_table="wheel",
        runs_table="runs",
        lane_queues={lane: lane.value for lane in Lane},
        segments=options.segments,
        look_ahead_minutes=options.look_ahead_minutes,
        # A workload of an hour keeps its rows for hours, which is no option.
        run_retention_days=max(1, options.run_lifetime.days),
        executor_timeout_seconds=options.function_timeout_seconds,
        event_bus="simulated",
        target_arns=("arn:*:*:*:*:*",),
        owner_jobs=options.owner_jobs,
        owner_scheduled_per_minute=options.owner_scheduled_per_minute,
        owner_starts_per_minute=options.owner_starts_per_minute,
        owner_concurrent_runs=options.owner_concurrent_runs,
        owner_requests_per_second=0,
        catch_up_per_minute=options.catch_up_per_minute,
        longest_delay_seconds=options.longest_delay_seconds,
        slow_after_seconds=options.slow_after_seconds,
        slow_lane_share=options.slow_lane_share,
        chunks=options.chunks,
    )
