"""Made nights: nothing is gone or new that is not, and what flaps is named."""

import os
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from tests.browser import CHROMIUM, browser
from tests.history import made_nights
from tests.history.made_nights import DEPLOYED, FLAPPING, FLAPPING_HOST, QUIET, RECORDED, TOGGLED
from tests.recordings.tables import DATA

NIGHTS, SEED = int(os.environ.get("NIGHTS", "6")), 7
"""`make calendar` makes 30."""
COLLECTION = DATA / "nightly" / "collection"


def fold(runs: Path, output: Path, *words: str) -> Any:
    assert main("history", ["--runs", str(runs), "--output", str(output), *words]) == 0
    return {p.name: pq.read_table(p).to_pylist() for p in output.iterdir() if p.is_dir()}


@pytest.fixture(scope="module")
def calendar(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[made_nights.Planted], Path, Any]:
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
            assert row["state"] in ("OPEN", "NOT_LOOKED_AT"), row
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


def test_runs_of_audit_and_of_propagate(tmp_path: Path) -> None:
    """An audit, and how long the changes of its night take to spread."""
    runs, ingested = tmp_path / "runs", tmp_path / "ingested"
    collection = ["--collection", str(COLLECTION)]
    assert main("audit", [*collection, "--output", str(runs / "night")]) == 3
    assert main("ingest", [*collection, "--output", str(ingested)]) == 0
    words = ["--input", str(ingested), "--output", str(runs / "spread"), "--seeds", "5"]
    assert main("propagate", words) == 0
    owners = tmp_path / "owners.toml"
    owners.write_text('[[owner]]\npattern = "crm"\nteam = "sales"\nchannel = "#crm"\n')
    tables = fold(runs, tmp_path / "history", "--owners", str(owners))
    (night,) = tables["nights"]
    assert len(night["run_id"]) == 32
    groups = {row["consumer_group"]: row for row in tables["group_nights"]}
    spread = pq.read_table(runs / "spread" / "propagation").to_pylist()
    slowest = max(r["convergence_ms_p99"] for r in spread if r["consumer_group"] == "crm")
    assert groups["crm"]["settle_p99_ms"] == slowest
    assert groups["report-old"]["verdict"] == "OFFLINE"
    teams = {row["consumer_group"]: row["owner"] for row in tables["open_findings"]}
    assert (teams["crm"], teams["search"]) == ("sales", None)
    metrics = (tmp_path / "history" / "metrics.prom").read_text()
    assert 'owner="sales",channel="#crm"}' in metrics


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: nobody looked at the page")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_asks_for_nothing_and_fits(calendar: Any, tmp_path: Path, scheme: str) -> None:
    _, folder, _ = calendar
    page = folder / "history" / "history.html"
    assert page.stat().st_size < 2_000_000
    with browser(tmp_path) as tab:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        tab.call("Emulation.setEmulatedMedia", features=features)
        narrow = {"width": 500, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        tab.call("Emulation.setDeviceMetricsOverride", **narrow)
        tab.open(page.as_uri())
        assert tab.requests() == [page.as_uri()]
        assert tab.complaints() == []
        assert tab.run("document.documentElement.scrollWidth") <= 500
        tables = "[...document.querySelectorAll('table')].map(t => [t.className, t.scrollWidth])"
        assert [table for table in tab.run(tables) if table[1] > 476] == []
        ink, paper = tab.run("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
        dark = [sum(map(int, re.findall(r"[0-9]+", one)[:3])) < 384 for one in (ink, paper)]
        assert dark == [scheme == "light", scheme == "dark"]
