"""Strategies told from live ownership, with the recordings' logs of the clients taken away."""

import shutil
from pathlib import Path

import pytest

from rebalance_core.ingest.in_process import Ingested, ingest_collection
from tests.recordings.tables import DATA


def without_names(folder: Path, recording: str) -> Path:
    """The collection without the files that name strategies."""
    shutil.copytree(DATA / recording / "collection", folder)
    shutil.rmtree(folder / "clients")
    (folder / "consumer_groups.jsonl").unlink()
    for path in (folder / "mqadmin").glob("*consumerStatus*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


def strategies(done: Ingested) -> dict[str, str]:
    return {row["consumer_group"]: row["strategy"] for row in done.tables["consumer_groups"]}


def rules(done: Ingested, group: str) -> set[str]:
    return {row["rule_id"] for row in done.tables["findings"] if row.get("consumer_group") == group}


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    return ingest_collection(without_names(tmp_path_factory.mktemp("n") / "c", "nightly"))


def test_ownership_that_fits_the_assumed_strategy_confirms_it(nightly: Ingested) -> None:
    assert strategies(nightly)["order-service"] == "AVG"
    assert "INGEST_STRATEGY_UNKNOWN" not in rules(nightly, "order-service")


def test_ownership_that_fits_another_strategy_names_it(nightly: Ingested) -> None:
    assert strategies(nightly)["pay-service"] == "AVG_BY_CIRCLE"
    assert "INGEST_STRATEGY_INFERRED" in rules(nightly, "pay-service")


def test_ownership_that_fits_none_is_unknown(tmp_path: Path) -> None:
    done = ingest_collection(without_names(tmp_path / "c", "strategies"))
    assert strategies(done)["s-hash"].startswith("CONSISTENT_HASH")
    assert "INGEST_STRATEGY_UNKNOWN" in rules(done, "s-near")


def test_a_dump_that_leaves_a_broker_out_proves_nothing(tmp_path: Path) -> None:
    done = ingest_collection(without_names(tmp_path / "c", "strategies"))
    assert rules(done, "s-room") == {"INGEST_ASSUMED"}
