"""Lite pull members that subscribe in their heartbeat what they do not divide (rocketmq#9789)."""

import shutil
from pathlib import Path

import pytest

from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.process.audit import unwritten_inputs
from rebalance_core.process.simulate import simulate
from tests.recordings.audited import audit_folder

CASE = Path(__file__).parent / "data" / "lite-assign"


@pytest.fixture(params=["as collected", "without clients/"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(CASE, tmp_path / "collection"))
    if request.param == "without clients/":
        shutil.rmtree(copy / "clients")
    return copy


def test_who_assigns_is_never_said_to_differ(folder: Path) -> None:
    tables = audit_folder(folder)
    verdicts = {row["consumer_group"]: row for row in tables["group_verdicts"]}
    for group in ("l-heart", "l-assign"):
        assert (verdicts[group]["verdict"], verdicts[group]["reason"]) == ("UNKNOWN", "ASSIGNED")
    assert verdicts["l-sub"]["verdict"] == "EQUAL"
    of_heart = [row for row in tables["findings"] if row["consumer_group"] == "l-heart"]
    assert {row["severity"] for row in of_heart} == {"INFO"}


def test_no_move_is_invented_where_the_log_shows_none() -> None:
    inputs = unwritten_inputs(open_collection(CASE), Assumptions())
    diffs = simulate(inputs.history).diffs.to_pylist()
    assert not [row for row in diffs if row["consumer_group"] == "l-heart"]
    assert [row for row in diffs if row["consumer_group"] == "l-sub"]
    held = {
        (row["broker_name"], row["queue_id"], row["client_id"])
        for row in diffs
        if row["consumer_group"] == "l-push-heart" and row["topic"] == "Orders"
    }
    assert not [one for one in held if one[2].startswith("10.0.0.6@")]


def test_what_was_not_collected_is_named(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(CASE, tmp_path / "collection"))
    shutil.rmtree(copy / "clients")
    found = [r for r in audit_folder(copy)["findings"] if r["rule_id"] == "INGEST_MAY_ASSIGN"]
    assert {row["consumer_group"] for row in found} == {"l-heart", "l-sub", "l-push-heart"}
    (mixed,) = [row for row in found if row["consumer_group"] == "l-push-heart"]
    assert mixed["evidence"]["clients"].startswith("10.0.0.6@")  # a push consumer always divides
    assert "rocketmq_client.log" in mixed["remedy"]
