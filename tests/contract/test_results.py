"""RunStore: results that are kept whole."""

from dataclasses import replace

from carillon.domain.run import WHOLE_RESULT_LIMIT_BYTES
from carillon.stores.dynamo.attributes import item_size
from carillon.stores.dynamo.runs import result_item_of
from tests.contract.kit import Kit
from tests.contract.samples import a_key, a_run

WHOLE = "ü" * (WHOLE_RESULT_LIMIT_BYTES // 2)


def test_a_whole_result_comes_back_to_its_claim(kit: Kit) -> None:
    run = a_run(a_key(kit.new_owner()))
    assert kit.runs.get_result(run) is None
    kit.runs.put_result(run, WHOLE)
    kit.runs.put_result(run, WHOLE)  # again
    later = replace(run, claim_id="A" * 26)
    kit.runs.put_result(later, "line\n\tand line")
    assert kit.runs.get_result(run) == WHOLE
    assert kit.runs.get_result(later) == "line\n\tand line"


def test_a_whole_result_is_its_runs_and_its_owners(kit: Kit) -> None:
    owner = kit.new_owner()
    run = a_run(a_key(owner))
    kit.runs.put_result(run, WHOLE)
    for key in (a_key(kit.new_owner()), a_key(owner, redrive=1)):
        assert kit.runs.get_result(replace(run, key=key)) is None


def test_lists_of_runs_have_no_whole_results(kit: Kit) -> None:
    run = a_run(a_key(kit.new_owner()))
    kit.runs.put_result(run, WHOLE)
    assert kit.runs.list(run.key.owner, run.key.job_id, 10).items == ()
    assert kit.runs.claim(run, over=None)
    assert kit.runs.list(run.key.owner, run.key.job_id, 10).items == (run,)


def test_a_whole_result_is_compressed(kit: Kit) -> None:
    """A page of JSON takes few write units."""
    rows = "[" + ",".join(f'{{"row":{n},"ok":true}}' for n in range(1400)) + "]"
    run = a_run(a_key(kit.new_owner()))
    assert len(rows) > 30_000
    assert item_size(result_item_of(run, rows)) < 8 * 1024
