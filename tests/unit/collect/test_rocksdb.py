"""Brokers that keep their configurations in RocksDB."""

from pathlib import Path

import pytest

from rebalance_core.ingest.collection import identify
from rebalance_core.ingest.parse.config_stores import parse_store_listing
from tests.unit.collect.machines import Run, collect, executable, machines
from tests.unit.collect.test_ask import ANSWER, JAVA
from tests.unit.ingest.documents import facts

STORES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json")


def with_rocksdb(root: Path, folder: str, *, exported: bool) -> Path:
    """The machines, broker-a's store a RocksDB with or without exported JSON files."""
    sources = machines(root)
    config = root / "mq1/store/config"
    (config / folder).mkdir()
    (config / folder / "CURRENT").write_text("MANIFEST-000001\n")
    for path in config.glob("*.json*"):
        if path.name.partition(".")[0] + ".json" in STORES:
            path.unlink()
    for name in STORES:
        if exported:
            (config / name).write_text("{}")
    return sources


def copy(root: Path, sources: Path) -> Run:
    return collect(root, "--sources", str(sources), "--cluster", "C", "--no-admin")


def test_exported_files_are_copied_with_a_listing_that_dates_them(tmp_path: Path) -> None:
    run = copy(tmp_path, with_rocksdb(tmp_path, "topics", exported=True))
    assert run.code == 0, run.stderr
    assert "as old as the last mqadmin rocksDBConfigToJson" in run.stderr
    (listing,) = run.output.glob("brokers/broker-a/store-files-*.txt")
    assert identify(listing.relative_to(run.output).as_posix()) is not None
    (found,) = facts(parse_store_listing(listing.read_text(), "f"), "store_form")
    assert found["forms"] == ["ROCKSDB"]
    written = (tmp_path / "mq1/store/config/topics.json").stat().st_mtime
    assert ("topics.json", int(written) * 1000) in found["modified"]
    assert not list(run.output.glob("brokers/room@b/store-files-*"))


@pytest.mark.parametrize("folder", ["topics", "metadata"])
def test_what_was_not_exported_is_named_with_the_command(tmp_path: Path, folder: str) -> None:
    run = copy(tmp_path, with_rocksdb(tmp_path, folder, exported=False))
    assert run.code == 1
    assert "has no topics.json, subscriptionGroup.json, consumerOffset.json" in run.stderr
    assert "mqadmin rocksDBConfigToJson -b" in run.stderr
    assert "collection.toml" in run.files()


def test_v2_cannot_be_exported(tmp_path: Path) -> None:
    run = copy(tmp_path, with_rocksdb(tmp_path, "rdb", exported=False))
    assert run.code == 1
    assert "config/rdb (configManagerVersion=v2) cannot be exported" in run.stderr


@pytest.mark.parametrize(("folder", "asked"), [("rdb", "yes"), ("topics", "yes"), ("other", "no")])
def test_brokers_are_asked_to_export_where_one_has_a_rocksdb(
    tmp_path: Path, folder: str, asked: str
) -> None:
    sources = with_rocksdb(tmp_path, folder, exported=True)
    executable(tmp_path / "rocketmq/lib/rocketmq-tools-5.5.0.jar", "")
    java = (
        JAVA.format(root=tmp_path, code=0, answer=ANSWER)
        + f'echo "$COLLECT_EXPORT" > {tmp_path}/export\nexit 0\n'
    )
    executable(tmp_path / "jdk/bin/java", java.replace("exit 0\n", "", 1))
    run = collect(
        tmp_path,
        *["--sources", str(sources), "--cluster", "C", "--name-server", "h:1"],
        JAVA_HOME=str(tmp_path / "jdk"),
        ROCKETMQ_HOME=str(tmp_path / "rocketmq"),
    )
    assert run.code == 0, run.stderr
    assert (tmp_path / "export").read_text() == f"{asked}\n"
