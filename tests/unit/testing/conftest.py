import pytest

from carillon.tasks import registered_tasks


@pytest.fixture(autouse=True)
def own_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may register tasks of one name, one after the other."""
    monkeypatch.setattr(registered_tasks, "_functions", {})
