"""What the documents point at is there: tests, make targets, files, each other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SEEDS = ROOT / "docs" / "seeds.md"


def name_of(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_tests_that_are_named_exist(document: Path) -> None:
    for path, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", document.read_text()):
        assert (ROOT / path).is_file(), path
        if name:
            assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_files_that_are_named_exist(document: Path) -> None:
    named = re.findall(
        r"`((?:shared|functions|infra|docs)/[\w/]+\.(?:py|md))`", document.read_text()
    )
    for path in named:
        assert (ROOT / path).is_file(), path


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        if not link.startswith("http"):
            assert (document.parent / link).exists(), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_make_targets_that_are_named_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"`make ([a-z-]+)", document.read_text())) <= targets


def test_every_capability_of_the_seeds_is_shown_by_something() -> None:
    rows = [line.split("|")[1:-1] for line in SEEDS.read_text().splitlines() if line[:1] == "|"]
    shown = [row for row in rows if len(row) == 3 and row[0].strip(" -")]
    assert len(shown) > 60
    for capability, form, proof in shown:
        if capability.strip() == "capability":
            continue
        assert form.strip()
        assert re.search(r"`(tests/|make )", proof), capability
        assert "not yet" not in (capability + form + proof).lower()
