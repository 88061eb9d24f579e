"""Every setting by the table: what is taken, answered, changed and taken back, and what is not."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from carillon.api.http.fields import field_errors
from carillon.api.jobs.drafts import fingerprint_of
from carillon.api.jobs.request_models import JobPatch
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.merge_patch import merged_document
from tests.settings import BAD, BODY, FUNCTION, GOOD, REQUIRED, SETTINGS, body_of, members
from tests.unit.api.conftest import World, without_report
from tests.unit.api.gateway import Client, Json


@pytest.fixture
def client(world: World) -> Client:
    """Of a deployment with an event bus that may call one function; there is a calendar, and
    another job."""
    world.settings = replace(world.settings, event_bus="bus", target_arns=(FUNCTION,))
    client = Client(world.api())
    client.put("/calendars/holidays", {"weekdays": ["sun"]})
    client.post("/jobs", BODY | {"name": "nightly"})
    return client


def test_every_setting_has_its_cases() -> None:
    assert set(SETTINGS) == set(members())
    for name, setting in SETTINGS.items():
        assert setting.good, name
        assert setting.bad or name == "payload", name


@pytest.mark.parametrize(("name", "value", "answered"), GOOD)
def test_a_setting_is_created_answered_and_changed(
    client: Client, name: str, value: Any, answered: Any
) -> None:
    plain = client.post("/jobs", BODY).json

    created = client.post("/jobs", body_of(name, value))

    assert created.status == 201, created.text
    assert created.json[name] == answered
    assert repr(created.json[name]) == repr(answered), "1 is not true"
    path = f"/jobs/{created.json['job_id']}"
    assert without_report(client.get(path).json) == without_report(created.json)
    other = client.patch(path, {"description": "other"}, 1).json
    assert other[name] == ("other" if name == "description" else answered)
    if name == "name":
        return  # it is the job's address
    changed = client.patch(f"/jobs/{plain['job_id']}", body_of(name, value, {}), 1)
    assert (changed.status, changed.json[name]) == (200, answered), changed.text


@pytest.mark.parametrize(("name", "value", "_"), GOOD)
def test_an_idempotency_key_stands_for_every_setting(name: str, value: Any, _: Any) -> None:
    one, two = map(JobSpec.model_validate, (BODY, body_of(name, value)))
    assert (fingerprint_of(one) == fingerprint_of(two)) == (one.document == two.document)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_null_is_the_default_or_refused(client: Client, name: str) -> None:
    answer = client.post("/jobs", BODY | {name: None})
    job = client.post("/jobs", body_of(name, SETTINGS[name].good[0][0])).json
    instead = {"schedule": "every 5m"} if name == "after" else {}
    changed = client.patch(f"/jobs/{job['job_id']}", {name: None} | instead, "*")

    if name in REQUIRED:
        assert (answer.status, answer.fields) == (422, [name])
        assert (changed.status, changed.fields) == (422, [name])
    else:
        assert (answer.status, answer.json[name]) == (201, SETTINGS[name].default)
        assert (changed.status, changed.json[name]) == (200, SETTINGS[name].default)


@pytest.mark.parametrize("name", REQUIRED)
def test_what_is_required_is_said_to_be(name: str) -> None:
    body = {other: value for other, value in BODY.items() if other != name}
    ((field, message),) = refusal(JobSpec, body)
    assert (field, message.startswith("is required")) == (name, True)


@pytest.mark.parametrize(("name", "value", "path"), BAD)
def test_a_bad_value_is_named_at_its_place(name: str, value: Any, path: str) -> None:
    errors = refusal(JobSpec, body_of(name, value))
    assert [field for field, _ in errors] == [path], errors
    assert errors[0][1]


@pytest.mark.parametrize(("name", "value", "path"), BAD)
def test_a_bad_change_is_named_at_its_place(name: str, value: Any, path: str) -> None:
    """By the form of changes, or by what the change would make of a job without the setting."""
    document = JobSpec.model_validate(BODY).document | body_of(name, None, {})

    def change() -> None:
        patch = JobPatch.model_validate({name: value})
        changes = patch.model_dump(mode="json", exclude_unset=True, by_alias=True)
        JobSpec.model_validate(merged_document(document, changes))

    with pytest.raises(ValidationError) as raised:
        change()
    assert [field for field, _ in field_errors(raised.value.errors())] == [path]


def refusal(form: type[JobSpec], document: Json) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as raised:
        form.model_validate(document)
    return field_errors(raised.value.errors())
