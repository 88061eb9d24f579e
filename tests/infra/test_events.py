"""The bus of lifecycle events: off unless asked for, and only the functions put events on it."""

from tests.infra.stacks import SynthesizedStack


def test_there_is_no_bus_by_default(production: SynthesizedStack) -> None:
    assert production.resources("Events::EventBus") == {}


def test_the_bus_is_named_by_the_deployment(unusual: SynthesizedStack) -> None:
    (logical_id,) = unusual.resources("Events::EventBus")
    assert unusual.output("EventBusName") == logical_id
    name = unusual.properties("Events::EventBus")[logical_id]["Name"]
    assert name == f"{unusual.name}-events"


def test_no_other_account_may_put_events_and_nothing_is_archived(
    unusual: SynthesizedStack,
) -> None:
    assert unusual.resources("Events::EventBusPolicy") == {}
    assert unusual.resources("Events::Archive") == {}


def test_every_function_hears_which_bus_it_is(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    for function in unusual.functions().values():
        variable = function["Environment"]["Variables"]["EVENT_BUS"]
        assert variable == {"Ref": unusual.output("EventBusName")}
    for function in production.functions().values():
        assert "EVENT_BUS" not in function["Environment"]["Variables"]
