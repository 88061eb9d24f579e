"""Rows and messages as they were written before schedules had ends, windows and calendars, and
before jobs had policies beyond a retry.

They are read as they were meant, and what leaves the new fields to their defaults is still
written just so: an upgrade rewrites nothing, and a rollback can read it.
"""

import json
from datetime import timedelta
from typing import Any

from carillon.domain.job import Lane, PreviousFiling
from carillon.domain.message import Message, Missed, decode, encode
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunError, RunStatus
from carillon.domain.targets import WebhookTarget
from carillon.domain.wheel.entry import Slot, entry_of_message
from carillon.domain.wheel.segment import Cursor
from carillon.schedules import SlotKind, parse_schedule
from carillon.stores.dynamo import jobs, runs, wheel
from tests.contract.samples import (
    CLAIM_ID,
    FILING_ID,
    FIRE_AT,
    NOW,
    a_control,
    a_job,
    a_key,
    a_message,
    a_run,
    an_entry,
    job_id,
)

OWNER = "someone"
SCHEDULE = parse_schedule("0 9 * * MON-FRI", "Europe/Riga", FIRE_AT)
JOB_ID = "l6zr4mewik6hkkeq3rhq4hvsqf"

JOB: dict[str, Any] = {
    "owner": {"S": OWNER},
    "job_id": {"S": JOB_ID},
    "name": {"S": "nightly report"},
    "schedule": {"S": "0 9 * * MON-FRI"},
    "timezone": {"S": "Europe/Riga"},
    "start_at": {"N": "1795178117000000"},
    "target": {"S": '{"type":"task","name":"samples.hello"}'},
    "payload": {"S": '{"report":"sales"}'},
    "segment": {"N": "3"},
    "filing": {"M": {"filing_id": {"S": FILING_ID}, "from_at": {"N": "1795178096789012"}}},
    "previous": {
        "M": {
            "filing_id": {"S": FILING_ID},
            "from_at": {"N": "1795091696789012"},
            "until_at": {"N": "1795178096789012"},
        }
    },
    "created_at": {"N": "1795178096789012"},
    "updated_at": {"N": "1795178096789012"},
    "state": {"S": "active"},
    "revision": {"N": "1"},
    "priority": {"S": "normal"},
    "catch_up": {"S": "latest"},
    "retry": {
        "M": {
            "max_attempts": {"N": "3"},
            "base_seconds": {"N": "2"},
            "factor": {"S": "2.0"},
            "cap_seconds": {"N": "3600"},
        }
    },
    "timeout_seconds": {"N": "10"},
    "fingerprint": {"S": ""},
}
ENTRY = {
    "segment_slot": {"S": "3#d420"},
    "entry_key": {"S": f"{JOB_ID}#{FILING_ID}"},
    "o": {"S": OWNER},
    "f": {"N": "1795178096789012"},
    "s": {"S": "0 9 * * MON-FRI"},
    "z": {"S": "Europe/Riga"},
    "a": {"N": "1795178117000000"},
    "l": {"S": "high"},
}
MESSAGE = (
    '{"v":1,"runs":[{"owner":"someone","job_id":"l6zr4mewik6hkkeq3rhq4hvsqf","kind":"scheduled",'
    '"fire_at":1795178117,"filing":"01KAGZ7T2M9GQ4C5V0Y6N8XWRD","segment":3,"lane":"normal",'
    '"due_at":1795178117,"attempt":1,"slot":"h17","missed":{"since":1795167317,'
    '"catch_up":"latest","schedule":"0 9 * * MON-FRI","timezone":"Europe/Riga",'
    '"start_at":1795178117}}]}'
)
ENTRY_OF_MESSAGE = {
    "segment_slot": {"S": "3#m29919635"},
    "entry_key": {"S": f"{JOB_ID}#{FILING_ID}#8204821882#scheduled##0#1"},
    "o": {"S": OWNER},
    "f": {"N": "1795178117000000"},
    "m": {"S": MESSAGE},
    "expires_at": {"N": "1796387700"},
}
RUN = {
    "job_key": {"S": f"{OWNER}#{JOB_ID}"},
    "run_key": {"S": "8204821882#scheduled##0"},
    "f": {"N": "1795178117000000"},
    "s": {"S": "succeeded"},
    "n": {"N": "1"},
    "t": {"N": "1"},
    "c": {"S": CLAIM_ID},
    "g": {"S": FILING_ID},
    "u": {"N": "1795178096789012"},
    "b": {"N": "1795178096789012"},
    "a": {"N": "1795178096789012"},
    "e": {"N": "1795178096789012"},
    "r": {"S": "12"},
    "expires_at": {"N": "1797770096"},
}


DEAD_RUN: dict[str, Any] = {
    **{name: value for name, value in RUN.items() if name != "r"},
    "s": {"S": "dead"},
    "x": {"M": {"k": {"S": "http_410"}, "m": {"S": "Gone"}, "p": {"BOOL": True}}},
    "y": {"S": "refused"},
    "dead_owner": {"S": OWNER},
    "dead_key": {"S": f"8204821882#scheduled##0#{JOB_ID}"},
}
CONTROL: dict[str, Any] = {
    "segment_slot": {"S": "3#control"},
    "entry_key": {"S": "control"},
    "horizon": {"N": "29700000"},
    "watermark": {"N": "29699998"},
    "token": {"N": "0"},
    "cursor": {
        "M": {"minute": {"N": "29699999"}, "slot_key": {"S": "h59"}, "entry_key": {"S": "job#f"}}
    },
}


def the_message() -> Message:
    missed = Missed(FIRE_AT - timedelta(hours=3), CatchUp.LATEST, SCHEDULE)
    return a_message(OWNER, slot_key="h17", missed=missed)


def test_the_samples_have_the_id_that_these_rows_have() -> None:
    assert job_id() == JOB_ID


def test_a_job() -> None:
    previous = PreviousFiling(FILING_ID, NOW - timedelta(days=1), NOW)
    job = a_job(OWNER, schedule=SCHEDULE, previous=previous, timeout_seconds=10)
    assert jobs.job_of(JOB) == job
    assert jobs.item_of(job) == JOB


def test_a_standing_entry() -> None:
    slot = Slot(SlotKind.DAILY, 420)
    entry = an_entry(OWNER, 3, slot=slot, schedule=SCHEDULE, lane=Lane.HIGH)
    assert wheel.entry_of(3, slot, ENTRY) == entry
    assert wheel.item_of(entry) == ENTRY


def test_a_message() -> None:
    assert decode(MESSAGE) == the_message()
    assert json.loads(encode(the_message())) == json.loads(MESSAGE)


def test_an_entry_with_a_message() -> None:
    entry = entry_of_message(the_message())
    assert wheel.entry_of(3, entry.slot, ENTRY_OF_MESSAGE) == entry
    assert wheel.item_of(entry) == ENTRY_OF_MESSAGE


def test_a_run() -> None:
    fields = {"finished_at": NOW, "lease_until": None, "result": "12"}
    run = a_run(a_key(OWNER), status=RunStatus.SUCCEEDED, **fields)
    assert runs.run_of(RUN) == run
    assert runs.item_of(run) == RUN


def test_a_dead_letter() -> None:
    error = RunError("http_410", "Gone", permanent=True)
    fields = {"finished_at": NOW, "lease_until": None, "error": error, "reason": "refused"}
    run = a_run(a_key(OWNER), status=RunStatus.DEAD, **fields)
    assert runs.run_of(DEAD_RUN) == run
    assert runs.item_of(run) == DEAD_RUN


def test_a_webhook() -> None:
    text = '{"type":"webhook","url":"https://example.com/hook"}'
    job = jobs.job_of({**JOB, "target": {"S": text}})
    assert job.target == WebhookTarget(url="https://example.com/hook")
    assert jobs.item_of(job)["target"] == {"S": text}


def test_a_control() -> None:
    control = a_control(3, cursor=Cursor(29_699_999, "h59", "job#f"))
    assert wheel.control_of(3, CONTROL) == control
    assert wheel.control_item_of(control) == CONTROL
