"""Lite pull members that subscribe in their heartbeat what they do not divide (rocketmq#9789)."""

import shutil
from pathlib import Path

import pytest

from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import open_collection
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


@pytest.mark.parametrize("kept", ["clients", "mqadmin"])
def test_logs_that_begin_late_and_answers_tell_who_assigns(tmp_path: Path, kept: str) -> None:
    copy = Path(shutil.copytree(CASE, tmp_path / "collection"))
    if kept == "mqadmin":
        shutil.rmtree(copy / "clients")
    else:
        for folder in (copy / "mqadmin").glob("*-consumerStatus-*"):
            (shutil.rmtree if folder.is_dir() else Path.unlink)(folder)
    tables = audit_folder(copy)
    found = [r for r in tables["findings"] if r["rule_id"] == "INGEST_MAY_ASSIGN"]
    may = {"l-heart", "l-push-heart"} if kept == "clients" else set()
    assert {row["consumer_group"] for row in found} == may
    if kept == "clients":
        (mixed,) = [row for row in found if row["consumer_group"] == "l-push-heart"]
        assert mixed["evidence"]["clients"].startswith("10.0.0.6@")  # a push consumer divides
        assert "rocketmq_client.log" in mixed["remedy"]
    of_heart = [row for row in tables["findings"] if row["consumer_group"] == "l-heart"]
    assert {row["severity"] for row in of_heart} == {"INFO"}
