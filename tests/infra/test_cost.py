"""The model of the bill knows a deployment with the default options."""

from carillon.cdk.options import Options
from carillon.schedules.insight.cost import BUSY_POLLERS, DEFAULT, IDLE_POLLERS
from tests.infra.stacks import SynthesizedStack


def test_the_model_has_the_defaults_of_the_options() -> None:
    options = Options()
    assert options.segments == DEFAULT.segments
    assert {*options.memory_mb.values()} == {DEFAULT.memory_mb}
    assert options.run_retention_days == DEFAULT.run_retention_days
    assert options.recover_runs == DEFAULT.recover_runs


def test_the_model_counts_what_is_charged_by_the_month(production: SynthesizedStack) -> None:
    alarms = production.properties("CloudWatch::Alarm").values()
    # One of several metrics is charged for each of them.
    charged = sum(max(1, sum("MetricStat" in one for one in a.get("Metrics", []))) for a in alarms)
    assert charged == DEFAULT.alarms
    assert len(production.resources("CloudWatch::Dashboard")) == DEFAULT.dashboards
    assert len(production.resources("SecretsManager::Secret")) == DEFAULT.secrets


def test_the_model_counts_the_pollers_of_every_queue(production: SynthesizedStack) -> None:
    """Five a queue where a maximum concurrency is set, else two while it is empty."""
    mappings = production.properties("Lambda::EventSourceMapping").values()
    pollers = sum(BUSY_POLLERS if "ScalingConfig" in one else IDLE_POLLERS for one in mappings)
    modelled = DEFAULT.lanes * BUSY_POLLERS + DEFAULT.dead_letter_queues * IDLE_POLLERS
    assert pollers == modelled
