"""References lead somewhere: from documents to tests, make targets, files and sections, and from
code to documents."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_origin, get_type_hints

import pytest

from carillon.stores.ports import Stores

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SEEDS = ROOT / "docs" / "seeds.md"


def name_of(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=name_of)
def test_merges_are_resolved(document: Path) -> None:
    marks = re.findall(r"^(?:<{7} |={7}$|>{7} ).*", document.read_text(), re.MULTILINE)
    assert not marks


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


@cache
def sections_of(document: Path) -> frozenset[str]:
    """The anchors of its headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return frozenset(re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in headings)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", document.read_text()):
        if link.startswith("http"):
            continue
        path, _, section = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), link
        assert not section or section in sections_of(target), link


def sources() -> Iterator[Path]:
    for folder in ("shared", "functions", "infra", "tests", "docs"):
        for ending in ("py", "md"):
            yield from (ROOT / folder).rglob(f"*.{ending}")
    yield from (ROOT / name for name in ("README.md", "Makefile", "pyproject.toml"))


def test_cited_documents_and_sections_exist() -> None:
    """Code may cite a page of docs/, or a section of one, and no document of elsewhere."""
    for source in sources():
        text = source.read_text()
        assert not re.search(r"\b([D]ESIGN|[H]OUSE|[P]REFLIGHT|[F]ACTS)\b", text), source
        for path, section in re.findall(r"(?<![\w/])(docs/[\w-]+\.md)(?:#([\w-]+))?", text):
            assert (ROOT / path).is_file(), f"{source}: {path}"
            assert not section or section in sections_of(ROOT / path), f"{source}: {section}"


def test_every_page_is_on_the_list_of_pages() -> None:
    index = (ROOT / "README.md").read_text()
    for page in sorted((ROOT / "docs").glob("*.md")):
        assert f"](docs/{page.name})" in index, page.name


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


def test_the_tutorial_has_the_files_of_the_example() -> None:
    page = (ROOT / "docs" / "your-project.md").read_text()
    example = ROOT / "examples" / "billing"
    for name in ("app.py", "billing/jobs.py", "cdk.json", "jobs.yaml", "requirements.txt"):
        assert f"$ cat {name}\n{(example / name).read_text()}" in page, name


def test_every_port_of_a_deployment_is_on_the_page_about_stores() -> None:
    page = (ROOT / "docs" / "stores.md").read_text()
    ports = {(get_origin(each) or each).__name__ for each in get_type_hints(Stores).values()}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == ports - {"Callable"}
