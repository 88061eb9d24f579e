"""Jobs that a manifest manages: others change them on purpose only, and the next apply says so."""

from tests.unit.api.apply.test_apply import JOBS, actions, apply, changed, client, named
from tests.unit.api.gateway import Client

__all__ = ["client"]


def test_jobs_of_others_are_taken_over_on_purpose_only(client: Client) -> None:
    client.post("/jobs", {"name": "sync", **JOBS["sync"]})

    refused = apply(client)
    assert actions(refused) == {"report": "create", "sync": "refused"}
    assert refused["items"][1]["problem"]["type"] == "urn:carillon:problem:managed"
    assert not refused["written"]
    adopted = apply(client, adopt=True)["items"][1]
    assert (adopted["action"], adopted["changes"]) == (
        "change",
        [{"path": "managed_by", "before": None, "after": "manifest/billing"}],
    )
    other = client.post("/apply", {"manifest": "other", "jobs": JOBS}).json
    assert actions(other) == {"report": "refused", "sync": "refused"}


def test_a_managed_job_is_changed_elsewhere_by_force_only(client: Client) -> None:
    apply(client)
    job = named(client, "sync")
    path = f"/jobs/{job['job_id']}"

    for answer in (
        client.patch(path, {"overlap": "skip"}, 1),
        client.put("/jobs/named/sync", {**JOBS["sync"], "overlap": "skip"}),
        client.delete(path),
        client.delete("/jobs/named/sync"),
    ):
        assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:managed")
    assert client.put("/jobs/named/sync", JOBS["sync"]).json["action"] == "none"
    assert client.send("DELETE", "/jobs", query={"parent": "x"}).json["managed"] == 0
    assert client.post(f"{path}/pause").status == 200, "its state is not the manifest's"
    assert named(client, "sync")["overlap"] == "allow"


def test_a_deletion_of_many_leaves_managed_jobs(client: Client) -> None:
    apply(client, {"sync": {**JOBS["sync"], "parent": "x"}})
    client.post("/jobs", {"name": "own", "parent": "x", **JOBS["sync"]})

    found = client.send("DELETE", "/jobs", query={"parent": "x"}).json
    assert found == {"changed": 1, "managed": 1, "next_cursor": None}
    found = client.send("DELETE", "/jobs", query={"parent": "x", "force": "true"}).json
    assert found == {"changed": 1, "managed": 0, "next_cursor": None}


def test_drift_is_told_and_overwritten_by_force_only(client: Client) -> None:
    apply(client)
    path = f"/jobs/{named(client, 'sync')['job_id']}"
    headers = {"If-Match": '"1"'}
    done = client.send("PATCH", path, {"overlap": "skip"}, headers=headers, query={"force": "true"})
    assert done.status == 200

    drifted = apply(client)
    assert (actions(drifted), drifted["written"]) == ({"report": "none", "sync": "drift"}, False)
    problem = drifted["items"][1]["problem"]
    assert problem["type"] == "urn:carillon:problem:drift"
    assert "owner-1 (api) made its revision 2, the latest" in problem["detail"]
    assert drifted["items"][1]["changes"] == [
        {"path": "overlap", "before": "skip", "after": "allow"}
    ]
    assert actions(apply(client, force=True)) == {"report": "none", "sync": "change"}
    assert named(client, "sync")["overlap"] == "allow"
    assert actions(apply(client)) == {"report": "none", "sync": "none"}


def test_what_was_changed_by_hand_and_then_in_the_manifest_is_no_drift(client: Client) -> None:
    apply(client)
    path = f"/jobs/{named(client, 'sync')['job_id']}"
    client.send(
        "PATCH", path, {"overlap": "skip"}, headers={"If-Match": "*"}, query={"force": "true"}
    )

    assert actions(apply(client, changed(overlap="skip")))["sync"] == "none"
    assert actions(apply(client, changed(overlap="queue_one")))["sync"] == "change"
