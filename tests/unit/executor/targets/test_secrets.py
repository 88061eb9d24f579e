"""Owners' secrets: whose they are, how long they are kept, what is told when one is missing."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.executor.deadline import Deadline
from functions.executor.targets import secrets
from functions.executor.targets.secrets import (
    REFRESH_AFTER,
    AwsSecrets,
    OwnerSecrets,
    SecretError,
    owner_path,
)
from shared.clock import ManualClock
from shared.domain.targets import ParameterReference, SecretReference

START = datetime(2026, 3, 1, tzinfo=UTC)
TOKEN = SecretReference(secret="token")


class Source(AwsSecrets):
    """Texts by name; names of what was asked."""

    def __init__(self, **texts: str) -> None:
        super().__init__()
        self.texts = texts
        self.problem: SecretError | None = None
        self.asked: list[str] = []

    def secret(self, secret_id: str) -> str:
        self.asked.append(secret_id)
        if self.problem is not None:
            raise self.problem
        return self.texts[secret_id.rpartition("/")[2]]

    def parameter(self, name: str) -> str:
        return self.secret(name)


def soon() -> Deadline:
    return Deadline.after(5)


def test_names_begin_with_prefix_and_owner() -> None:
    source = Source(token="t", tenant="blue")
    owners = OwnerSecrets(source, "carillon", ManualClock(START))
    assert owners.text("ann@example.com", TOKEN, soon()) == "t"
    assert owners.text("ann", ParameterReference(parameter="tenant"), soon()) == "blue"
    assert source.asked == ["carillon/ann_40example.com/token", "/carillon/ann/tenant"]


@given(st.text(min_size=1), st.text(min_size=1))
def test_no_two_owners_share_a_path(one: str, other: str) -> None:
    try:
        one_path, other_path = owner_path(one), owner_path(other)
    except UnicodeEncodeError:
        return  # a lone surrogate: no token carries one
    assert (one_path == other_path) == (one == other)
    assert "/" not in one_path
    assert one_path.isascii()


def test_each_is_kept_for_a_while() -> None:
    clock, source = ManualClock(START), Source(token="first", other="o")
    owners = OwnerSecrets(source, "carillon", clock)
    for _ in range(3):
        owners.text("ann", TOKEN, soon())
    owners.text("bob", TOKEN, soon())
    owners.text("ann", SecretReference(secret="other"), soon())
    assert len(source.asked) == 3
    source.texts["token"] = " second\n"
    clock.advance(REFRESH_AFTER.total_seconds())
    assert owners.text("ann", TOKEN, soon()) == "second"


def test_an_old_text_serves_while_aws_is_not_there_but_not_when_it_was_removed() -> None:
    clock, source = ManualClock(START), Source(token="first")
    owners = OwnerSecrets(source, "carillon", clock)
    owners.text("ann", TOKEN, soon())
    source.problem = SecretError("secret_unavailable", "cannot be read (Throttling)")
    clock.advance(REFRESH_AFTER.total_seconds())
    assert owners.text("ann", TOKEN, soon()) == "first"
    source.problem = SecretError("secret_missing", "does not exist (ResourceNotFoundException)")
    clock.advance(REFRESH_AFTER.total_seconds())
    with pytest.raises(SecretError, match="the secret 'token' does not exist") as caught:
        owners.text("ann", TOKEN, soon())
    assert caught.value.kind == "secret_missing"


def test_a_missing_one_is_looked_for_again_at_once() -> None:
    source = Source(token="t")
    source.problem = SecretError("secret_missing", "does not exist (ParameterNotFound)")
    owners = OwnerSecrets(source, "carillon", ManualClock(START))
    with pytest.raises(SecretError, match="the parameter 'token'"):
        owners.text("ann", ParameterReference(parameter="token"), soon())
    source.problem = None
    assert owners.text("ann", ParameterReference(parameter="token"), soon()) == "t"


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "MOST_KEPT", 2)
    source = Source(token="t")
    owners = OwnerSecrets(source, "carillon", ManualClock(START))
    for owner in ("ann", "bob", "ann", "cid", "ann", "bob"):
        owners.text(owner, TOKEN, soon())
    assert [name.split("/")[1] for name in source.asked] == ["ann", "bob", "cid", "bob"]
