"""The world of each test, and how often it asks for admission."""

from collections import Counter

import pytest

from tests.unit.executor.kit import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def calls(world: World, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often gates are read and put."""
    counted: Counter[str] = Counter()
    for name in ("get", "put"):
        original = getattr(world.admission_rows, name)

        def count(*arguments: object, _name: str = name, _original: object = original) -> object:
            counted[_name] += 1
            return _original(*arguments)  # type: ignore[operator]

        monkeypatch.setattr(world.admission_rows, name, count)
    return counted
