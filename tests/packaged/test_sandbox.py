"""The share of a processor, by either version of control groups."""

from pathlib import Path

from tests.packaged.sandbox import CpuShare

SHARE_OF_512_MB = 28_942


def test_by_version_2(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory")
    (tmp_path / "carillon-17").mkdir()
    (tmp_path / "carillon-17" / "cpu.max").write_text("max 100000")
    share = CpuShare(17, 512, tmp_path)
    assert share.by == "cgroup v2"
    assert written(tmp_path / "carillon-17") == {
        "cpu.max": f"{SHARE_OF_512_MB} 100000",
        "cgroup.procs": "17",
    }


def test_by_version_1(tmp_path: Path) -> None:
    group = tmp_path / "cpu" / "carillon-17"
    group.mkdir(parents=True)
    for name in ("cpu.cfs_period_us", "cpu.cfs_quota_us"):
        (group / name).write_text("-1")
    share = CpuShare(17, 512, tmp_path)
    assert share.by == "cgroup v1"
    assert written(group) == {
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": str(SHARE_OF_512_MB),
        "cgroup.procs": "17",
    }


def test_where_groups_have_no_share_none_is_left(tmp_path: Path) -> None:
    """The parent of a new group does not hand on the controller, or there is none."""
    (tmp_path / "cgroup.controllers").write_text("memory")
    for root in (tmp_path, tmp_path / "none"):
        share = CpuShare(17, 512, root)
        assert share.by == ""
        share.end()
    assert [path.name for path in tmp_path.iterdir()] == ["cgroup.controllers"]


def written(group: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in group.iterdir()}
