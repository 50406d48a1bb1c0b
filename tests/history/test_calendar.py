"""Made nights: nothing is gone or new that is not, and what flaps is named."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from tests.history import made_nights
from tests.history.made_nights import DEPLOYED, FLAPPING, FLAPPING_HOST, QUIET, RECORDED, TOGGLED

NIGHTS, SEED = int(os.environ.get("NIGHTS", "6")), 7
"""`make calendar` makes 30."""


def fold(runs: Path, output: Path) -> dict[str, list[dict[str, Any]]]:
    assert main("history", ["--runs", str(runs), "--output", str(output)]) == 0
    return {p.name: pq.read_table(p).to_pylist() for p in output.iterdir() if p.is_dir()}


@pytest.fixture(scope="module")
def calendar(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[made_nights.Planted], Path, dict[str, list[dict[str, Any]]]]:
    folder = tmp_path_factory.mktemp("calendar")
    plans = made_nights.plan_nights(NIGHTS, SEED)
    made_nights.make_nights(folder, plans, SEED)
    return plans, folder, fold(folder / "runs", folder / "history")


def test_nights(calendar: Any) -> None:
    plans, _, tables = calendar
    nights = [row for row in tables["nights"] if row["cluster"] == RECORDED]
    assert [row["complete"] for row in nights] == [plan.complete for plan in plans]
    assert all(bool(row["missing"]) != row["complete"] for row in nights)


def test_states(calendar: Any) -> None:
    plans, _, tables = calendar
    found = {row["rule_id"]: row["state"] for row in tables["open_findings"]}
    assert {rule: found[rule] for rule in TOGGLED} == made_nights.states_by(plans)


def test_nothing_else_is_gone_or_new(calendar: Any) -> None:
    """Every other finding is in every night that could look for it."""
    plans, _, tables = calendar
    nights = [row["end_ms"] for row in tables["nights"] if row["cluster"] == RECORDED]
    for row in tables["open_findings"]:
        if row["cluster"] != RECORDED:
            continue
        if row["rule_id"] in TOGGLED or row["rule_id"] == "COLLECTION_INCOMPLETE":
            continue
        if row["first_night_ms"] == nights[0]:
            assert row["state"] in ("OPEN", "UNSEEN"), row
        else:  # only an incomplete night shows it, and it is not told as gone while one follows
            assert not plans[nights.index(row["first_night_ms"])].complete, row


def test_flaps(calendar: Any) -> None:
    plans, _, tables = calendar
    flaps = {(row["subject_kind"], row["subject"]): row for row in tables["flaps"]}
    group, host = flaps["GROUP", FLAPPING], flaps["HOST", FLAPPING_HOST]
    assert group["share_of_nights"] == sum(plan.flaps for plan in plans) / len(plans)
    assert group["first_mover"] == host["subject"] == FLAPPING_HOST
    deployed = flaps["GROUP", DEPLOYED]
    assert deployed["recurring_hours"] == [made_nights.DEPLOY_HOUR]
    assert deployed["joins_per_hour"] == deployed["leaves_per_hour"] == 4
    assert ("GROUP", QUIET) not in flaps


def test_order_of_folders_and_repeats(calendar: Any, tmp_path: Path) -> None:
    """Folders under other names, one of them twice, and what is no audit beside them."""
    _, folder, tables = calendar
    runs = sorted((folder / "runs").iterdir())
    random.Random(1).shuffle(runs)
    for number, run in enumerate(runs):
        shutil.copytree(run, tmp_path / "runs" / f"{number:02d}")
    shutil.copytree(runs[0], tmp_path / "runs" / "zz-again")
    (tmp_path / "runs" / "half" / "findings").mkdir(parents=True)
    (tmp_path / "runs" / "notes.txt").write_text("not a run")
    assert fold(tmp_path / "runs", tmp_path / "history") == tables
