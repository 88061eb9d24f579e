"""How many jobs an owner may have, and how often they may start."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from threading import Barrier, Thread
from time import sleep
from typing import Any

import pytest

from carillon.client.paths import quota_path
from carillon.clock import SeededEntropy
from carillon.domain.quotas import (
    NO_LIMITS,
    QUOTAS_OWNER,
    Load,
    OwnLimits,
    Quota,
    QuotaExceededError,
    Use,
)
from carillon.domain.spec.names import job_id_of
from carillon.errors import StoreUnavailableError
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import Quotas
from carillon.stores.memory import MemoryJobStore, MemoryVersionedRows
from carillon.stores.ports import USES, Tally
from tests.unit.api.conftest import BODY, NOW, World, new_world
from tests.unit.api.gateway import OWNER, Answer, Client, Json

EXCEEDED = "urn:carillon:problem:quota-exceeded"


class Uses(MemoryVersionedRows[Use]):
    """Counts its writes."""

    def __init__(self) -> None:
        super().__init__(USES)
        self.puts = 0
        self.fails = False
        self.put_seconds = 0.0

    def put(self, row: Use, over_revision: int | None) -> bool:
        if self.fails:
            raise StoreUnavailableError("throttled")
        self.puts += 1
        sleep(self.put_seconds)
        return super().put(row, over_revision)


class Jobs(MemoryJobStore):
    """Counts how often jobs are counted."""

    counts = 0

    def tally(self, owner: str, cursor: str | None = None) -> Tally:
        self.counts += 1
        return super().tally(owner, cursor)


class Limited(World):
    """Owners may have three jobs."""

    uses: Uses
    jobs: Jobs


@pytest.fixture
def world() -> Iterator[Limited]:
    made = new_world()
    made.settings = replace(made.settings, owner_jobs=3)
    made.uses, made.jobs = Uses(), Jobs()
    made.__class__ = Limited
    assert isinstance(made, Limited)
    yield made
    assert "request.failed" not in made.log.getvalue()


def post(client: Client, name: str, **members: Any) -> Answer:
    return client.post("/jobs", BODY | {"name": name} | members)


def made(client: Client, *names: str, **members: Any) -> None:
    for name in names:
        answer = post(client, name, **members)
        assert answer.status == 201, answer.text


def deleted(client: Client, name: str) -> None:
    answer = client.delete(f"/jobs/{job_id_of(OWNER, name)}")
    assert answer.status == 204, answer.text


def use_of(world: Limited) -> Use:
    found = world.uses.get(OWNER, "jobs")
    assert found is not None
    return found


def refusal(answer: Answer) -> Json:
    assert answer.status == 409, answer.text
    assert answer.json["type"] == EXCEEDED
    told: Json = answer.json["quota"]
    return told


def test_a_job_too_many_is_refused_with_the_limit_and_the_use(
    client: Client, world: Limited
) -> None:
    made(client, "a", "b", "c")

    answer = post(client, "d")
    assert refusal(answer) == {"name": "jobs", "limit": 3, "use": 3}
    assert "3 jobs of the 3" in answer.json["detail"]
    assert world.jobs.get(OWNER, job_id_of(OWNER, "d")) is None
    assert world.queue.receive(NOW + timedelta(days=1), 99) == []


def test_a_creation_and_a_deletion_take_a_write_each(client: Client, world: Limited) -> None:
    made(client, "a")
    assert (world.uses.puts, use_of(world).jobs) == (1, 1)
    made(client, "b")
    assert (world.uses.puts, use_of(world).jobs) == (2, 2)
    deleted(client, "a")
    assert (world.uses.puts, use_of(world).jobs) == (3, 1)
    assert world.jobs.counts == 1  # before the first one
    client.patch(f"/jobs/{job_id_of(OWNER, 'b')}", {"schedule": "every 1s"}, "*")
    client.post(f"/jobs/{job_id_of(OWNER, 'b')}/pause")
    assert world.uses.puts == 3


def test_a_deleted_job_makes_room_and_its_name_can_be_used_again(client: Client) -> None:
    made(client, "a", "b", "c")
    deleted(client, "b")

    made(client, "b")
    refusal(post(client, "d"))


def test_another_owner_has_room(client: Client, stranger: Client) -> None:
    made(client, "a", "b", "c")
    made(stranger, "a", "b", "c")


def test_a_repeated_creation_is_no_other(client: Client) -> None:
    made(client, "a", "b")
    body = BODY | {"name": "c"}
    assert client.post("/jobs", body, key="k").status == 201
    assert client.post("/jobs", body, key="k").status == 200
    assert post(client, "c").json["type"].endswith(":name-taken")
    assert client.send("PUT", "/jobs/named/c", body | {"schedule": "every 7m"}).status == 200


def crashed(world: Limited, by: int) -> None:
    """As processes leave the row that have died between it and the job's."""
    now, stored = world.clock.now(), use_of(world)
    counted_at = now - timedelta(seconds=10)
    wrong = replace(
        stored, jobs=stored.jobs + by, revision=stored.revision + 1, counted_at=counted_at
    )
    assert world.uses.put(wrong, stored.revision)


def test_what_a_crash_leaves_refuses_nothing(client: Client, world: Limited) -> None:
    made(client, "a", "b")
    crashed(world, +7)

    made(client, "c")
    assert use_of(world).jobs == 3
    refusal(post(client, "d"))


def test_a_row_that_is_too_low_lets_pass_no_more_than_it_lacks(
    client: Client, world: Limited
) -> None:
    made(client, "a", "b", "c")
    crashed(world, -1)

    made(client, "d")  # what was under way while somebody counted
    assert refusal(post(client, "e"))["use"] == 4
    deleted(client, "a")
    assert refusal(post(client, "e"))["use"] == 3


def test_who_repeats_what_is_refused_does_not_have_all_jobs_counted(
    client: Client, world: Limited
) -> None:
    made(client, "a", "b", "c")
    world.clock.advance(60)
    counts = world.jobs.counts
    for _ in range(5):
        refusal(post(client, "d"))
    assert world.jobs.counts == counts + 1
    world.clock.advance(10)
    refusal(post(client, "d"))
    assert world.jobs.counts == counts + 2


def test_a_job_that_completes_is_found_gone_by_the_next_count(
    client: Client, world: Limited
) -> None:
    made(client, "a", "b", "c")
    job = world.jobs.get(OWNER, job_id_of(OWNER, "a"))
    assert job is not None
    tombstone = replace(job.deleted(NOW, NOW + timedelta(days=30)), revision=job.revision + 1)
    assert world.jobs.replace(tombstone, job.revision)  # an executor's, which counts nothing

    world.clock.advance(10)
    made(client, "d")


def test_jobs_that_were_there_before_the_row_count(client: Client, world: Limited) -> None:
    made(client, "a", "b", "c")
    world.uses = Uses()
    refusal(post(Client(world.api()), "d"))


def test_a_store_that_fails_refuses_creations_and_no_deletion(
    client: Client, world: Limited
) -> None:
    made(client, "a")
    world.uses.fails = True

    assert post(client, "b").status == 503
    deleted(client, "a")
    world.uses.fails = False
    assert use_of(world).jobs == 1
    made(client, "b", "c")
    refusal(post(client, "d"))  # a count of the last ten seconds is relied on
    world.clock.advance(10)
    made(client, "d")


def test_of_many_in_one_call_those_that_fit_are_made(client: Client, world: Limited) -> None:
    items = [BODY | {"name": f"job {number}"} for number in range(20)]
    answer = client.post("/jobs/bulk", {"items": items})

    assert answer.status == 200, answer.text
    assert (answer.json["created"], answer.json["refused"]) == (3, 17)
    refused = [each for each in answer.json["items"] if each.get("problem")]
    assert {each["problem"]["type"] for each in refused} == {EXCEEDED}
    assert {each["problem"]["quota"]["limit"] for each in refused} == {3}
    assert use_of(world).jobs == 3


def test_an_apply_that_has_no_room_writes_nothing(client: Client, world: Limited) -> None:
    made(client, "a", "b")
    jobs = {name: {k: v for k, v in BODY.items() if k != "name"} for name in ("c", "d")}
    for dry_run in (True, False):
        answer = client.post("/apply", {"manifest": "m", "jobs": jobs, "dry_run": dry_run})
        actions = {each["name"]: each["action"] for each in answer.json["items"]}
        assert actions == {"c": "create", "d": "refused"}, answer.text
        (refused,) = (each for each in answer.json["items"] if each["action"] == "refused")
        assert refused["problem"]["quota"] == {"name": "jobs", "limit": 3, "use": 3}
    assert client.get("/jobs").json["items"][2:] == []
    assert use_of(world).jobs == 2


def test_a_rehearsal_of_a_put_is_refused_as_the_put_would_be(
    client: Client, world: Limited
) -> None:
    made(client, "a", "b", "c")
    spec = {k: v for k, v in BODY.items() if k != "name"}
    rehearsed = client.send("PUT", "/jobs/named/d", spec, query={"dry_run": "true"})

    assert rehearsed.json == client.put("/jobs/named/d", spec).json
    assert refusal(rehearsed) == {"name": "jobs", "limit": 3, "use": 3}
    assert client.send("PUT", "/jobs/named/a", spec, query={"dry_run": "true"}).status == 200


def test_what_has_room_already_counts_where_jobs_are_counted_for_the_next(
    client: Client, world: Limited
) -> None:
    made(client, "a")
    world.clock.advance(10)
    spec = {k: v for k, v in BODY.items() if k != "name"}
    manifest = {"manifest": "m", "jobs": dict.fromkeys("bcde", spec)}
    for dry_run in (True, False):
        answer = client.post("/apply", manifest | {"dry_run": dry_run})
        actions = [each["action"] for each in answer.json["items"]]
        assert actions == ["create", "create", "refused", "refused"], answer.text
    assert use_of(world).jobs == 1


def test_at_the_limit_a_job_can_be_renamed(client: Client, world: Limited) -> None:
    spec = {k: v for k, v in BODY.items() if k != "name"}
    manifest = {"manifest": "m", "jobs": {"a": spec, "b": spec, "c": spec}}
    assert client.post("/apply", manifest).status == 200
    named = {"a": spec, "b": spec, "new": spec | {"was": "c"}}
    answer = client.post("/apply", {"manifest": "m", "jobs": named})

    assert answer.status == 200, answer.text
    assert use_of(world).jobs == 3
    assert [each["name"] for each in client.get("/jobs").json["items"]] == ["a", "b", "new"]


def test_creations_at_once_share_a_write_and_none_is_let_through(world: Limited) -> None:
    stores: Any = world
    limits = Quotas({**NO_LIMITS, Quota.JOBS: 20})
    quotas = JobQuotas(limits, stores.jobs, stores.uses, world.clock, SeededEntropy(1))
    begin, refused = Barrier(32), list[QuotaExceededError]()

    def add() -> None:
        begin.wait()
        try:
            quotas.add(OWNER, Load(1, 24))
        except QuotaExceededError as error:
            refused.append(error)

    world.uses.put_seconds = 0.05
    threads = [Thread(target=add) for _ in range(32)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert (use_of(world).jobs, len(refused)) == (20, 12)
    assert world.uses.puts < 10


class TestScheduledStarts:
    @pytest.fixture
    def world(self, world: Limited) -> Limited:
        world.settings = replace(world.settings, owner_scheduled_per_minute=2)
        return world

    def test_the_means_of_all_jobs_count(self, client: Client, world: Limited) -> None:
        made(client, "a", schedule="every 1m")
        made(client, "b", schedule="*/2 * * * *")
        assert use_of(world).fires_per_day == 1_440 + 720

        answer = post(client, "c", schedule="every 1m")
        assert refusal(answer) == {"name": "scheduled_per_minute", "limit": 2, "use": 1.5}
        made(client, "c", schedule="every 2m")
        assert use_of(world).scheduled_per_minute == 2

    def test_a_change_of_a_schedule_counts(self, client: Client, world: Limited) -> None:
        made(client, "a", "b", schedule="every 1m")
        path = f"/jobs/{job_id_of(OWNER, 'a')}"

        refusal(client.patch(path, {"schedule": "every 59s"}, "*"))
        assert client.get(path).json["schedule"] == "every 1m"
        assert client.patch(path, {"schedule": "every 2m"}, "*").status == 200
        assert use_of(world).fires_per_day == 1_440 + 720
        assert client.patch(path, {"schedule": "every 1m"}, "*").status == 200

    def test_a_paused_job_counts_so_that_it_can_be_resumed(
        self, client: Client, world: Limited
    ) -> None:
        made(client, "a", "b", schedule="every 1m")
        path = f"/jobs/{job_id_of(OWNER, 'a')}"
        client.post(f"{path}/pause")

        refusal(post(client, "c"))
        assert client.post(f"{path}/resume").status == 200

    def test_a_crash_and_what_was_there_before_are_counted(
        self, client: Client, world: Limited
    ) -> None:
        made(client, "a", schedule="every 1m")
        stored = use_of(world)
        unknown = replace(stored, fires_per_day=None, revision=stored.revision + 1)
        assert world.uses.put(unknown, stored.revision)

        refusal(post(client, "b", schedule="every 30s"))
        deleted(client, "a")
        made(client, "b", schedule="every 30s")


Get = Callable[[str], Json]


def quota(answer: Answer) -> dict[str, Json]:
    assert answer.status == 200, answer.text
    return {each.pop("name"): each for each in answer.json["quotas"]}


class TestOwnLimits:
    PATH = "/owners/user/owner-1/quota"

    @pytest.fixture
    def operator(self, world: Limited, client: Client) -> Client:
        """On the same process as the client."""
        return Client(client._api, owner="user/op", groups="[operators]")

    def test_everybody_reads_the_own_limits_and_use(self, client: Client) -> None:
        made(client, "a")
        answer = client.get("/quota")

        assert answer.json["owner"] == OWNER
        assert quota(answer) == {
            "jobs": {"limit": 3, "own": False, "use": 1},
            "scheduled_per_minute": {"limit": 0, "own": False, "use": None},
            "starts_per_minute": {"limit": 0, "own": False, "use": None},
            "concurrent_runs": {"limit": 0, "own": False, "use": None},
            "requests_per_second": {"limit": 0, "own": False, "use": None},
        }

    def test_an_operator_sets_them(self, client: Client, operator: Client) -> None:
        made(client, "a", "b", "c")
        refusal(post(client, "d"))
        answer = operator.send("PUT", self.PATH, {"jobs": 4, "scheduled_per_minute": 9})

        assert answer.json["owner"] == OWNER
        assert quota(answer)["jobs"] == {"limit": 4, "own": True, "use": 3}
        assert quota(operator.get(self.PATH))["scheduled_per_minute"]["use"] == 0.6
        made(client, "d")
        assert refusal(post(client, "e"))["limit"] == 4

    @pytest.mark.parametrize("subject", ["auth0|ann", "a/b", "ann@example.com", "|" * 255])
    def test_any_subject_s_are_set(
        self, client: Client, operator: Client, world: Limited, subject: str
    ) -> None:
        """A path has most signs encoded."""
        path = quota_path(f"user/{subject}")
        assert operator.send("PUT", path, {"jobs": 4}).json["owner"] == f"user/{subject}"
        ann = Client(client._api, owner=f"user/{subject}")
        assert quota(ann.get("/quota"))["jobs"] == {"limit": 4, "own": True, "use": 0}
        line = json.loads(world.log.getvalue().splitlines()[-1])
        assert (line["action"], line["by"]["id"], line["via"]) == ("quota.put", "op", "api")

    def test_a_put_replaces_them_all(self, client: Client, operator: Client) -> None:
        operator.send("PUT", self.PATH, {"jobs": 0})
        made(client, *"abcde")
        assert operator.send("PUT", self.PATH, {"jobs": None}).status == 200
        assert quota(client.get("/quota"))["jobs"] == {"limit": 3, "own": False, "use": 5}
        refusal(post(client, "f"))
        deleted(client, "a")

    def test_they_count_in_other_processes_within_half_a_minute(
        self, client: Client, operator: Client, world: Limited
    ) -> None:
        other = Client(world.api())
        made(other, "a", "b", "c")
        operator.send("PUT", self.PATH, {"jobs": 4})

        world.clock.advance(29)
        refusal(post(other, "d"))
        world.clock.advance(1)
        made(other, "d")

    def test_only_operators_do(self, client: Client) -> None:
        for answer in (client.get(self.PATH), client.send("PUT", self.PATH, {"jobs": 9})):
            assert answer.status == 403
            assert answer.json["type"].endswith(":role-too-low")

    @pytest.mark.parametrize(
        ("path", "body", "field"),
        [
            ("/owners/team/Billing!/quota", {}, "name"),
            ("/owners/system/carillon/quota", {}, "kind"),
            ("/owners/user/%C3%A4/quota", {}, "name"),
            ("/owners/user/a%0Ab/quota", {}, "name"),
            (f"/owners/user/{'x' * 256}/quota", {}, "name"),
            ("/owners/team/billing/quota", {"job": 1}, "job"),
            ("/owners/team/billing/quota", {"jobs": -1}, "jobs"),
            ("/owners/team/billing/quota", {"jobs": 100_001}, "jobs"),
            ("/owners/team/billing/quota", {"concurrent_runs": "many"}, "concurrent_runs"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, operator: Client, path: str, body: Json, field: str
    ) -> None:
        answer = operator.send("PUT", path, body)
        assert (answer.status, answer.fields) == (422, [field]), answer.text

    def test_the_change_is_among_those_of_the_owner(
        self, client: Client, operator: Client, world: Limited
    ) -> None:
        operator.send("PUT", self.PATH, {"jobs": 4})
        world.clock.advance(1)
        operator.send("PUT", self.PATH, {"jobs": 5})
        operator.send("PUT", self.PATH, {"jobs": 5})

        newest, first = client.get("/changes").json["items"]
        assert (newest["subject"], newest["name"], newest["by"]["id"]) == ("quota", "quota", "op")
        assert newest["changed"] == [{"path": "jobs", "before": 4, "after": 5}]
        assert first["changed"] == [{"path": "jobs", "before": None, "after": 4}]
        assert operator.get("/changes").json["items"] == []

    def test_a_change_whose_row_was_lost_is_put_by_the_next(
        self, client: Client, operator: Client, world: Limited
    ) -> None:
        operator.send("PUT", self.PATH, {"jobs": 4})
        world.changes._owners.clear()
        operator.send("PUT", self.PATH, {"jobs": 5})
        assert len(client.get("/changes").json["items"]) == 2

    def test_requests(self, client: Client, operator: Client, world: Limited) -> None:
        operator.send("PUT", self.PATH, {"requests_per_second": 50})
        taken = [client.get("/quota").status for _ in range(50)]
        assert taken == [200] * 50

        answer = client.get("/quota")
        assert answer.status == 429
        assert answer.json["quota"] == {"name": "requests_per_second", "limit": 50, "use": 50}
        world.clock.advance(0.5)
        # With the request itself.
        assert quota(client.get("/quota"))["requests_per_second"]["use"] == 26
        assert quota(operator.get(self.PATH))["requests_per_second"]["limit"] == 50

    def test_a_row_that_cannot_be_had_leaves_what_is_known(self, world: Limited) -> None:
        row = OwnLimits(OWNER, 1, NOW, {Quota.JOBS: 1})
        assert world.quotas.put(row, None)
        assert row.owner == QUOTAS_OWNER
        client = Client(world.api())
        made(client, "a")
        refusal(post(client, "b"))

        def fail(*_: object) -> None:
            raise StoreUnavailableError("throttled")

        world.quotas.list = fail  # type: ignore[assignment, method-assign]
        world.clock.advance(60)
        assert refusal(post(client, "b"))["limit"] == 1
        made(Client(world.api()), "b")  # which knows nothing yet
