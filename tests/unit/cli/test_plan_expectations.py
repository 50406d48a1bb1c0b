"""`[[expect]]` in the files of `plan`: exit code 3, a line for each, JUnit XML, and refusals."""

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from rebalance_core.cli.main import main
from tests.plans import rows_of
from tests.tree import TREE

DEMO = TREE / "rebalance_core/bundled/demo"
STEADY = str(DEMO / "steady/tables")
LOSE_A = """
name = "lose-a"
description = "broker-a is lost"
[[edit]]
kind = "lose_broker"
broker = "broker-a"
at = "+10m"
"""


def plan(folder: Path, text: str, *words: str, of: str = "--scenario") -> int:
    path = folder / "asked.toml"
    path.write_text(text)
    output = ("--output", str(folder / "o"), "--overwrite")
    return main(None, ["plan", "--input", STEADY, of, str(path), *output, *words])


def test_a_broken_expectation_ends_with_3_and_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "gate.xml"
    expect = (
        '[[expect]]\ngroup = "check*"\norphaned = 0\nmoved = 3\n'
        "[[expect]]\npercentile = 100\nno_owner_s = 1e6\nread_again = 1e9\nlate_s = 1e6\n"
        "peak_queues = 1\n"
    )
    assert plan(tmp_path, LOSE_A + expect, "--junit", str(junit)) == 3
    said = capsys.readouterr().out
    assert "Expectations: 7 of 10 kept" in said
    (moved,) = [line for line in said.splitlines() if "BROKEN" in line and ": moved " in line]
    assert moved.startswith("  BROKEN DefaultCluster/checkout: moved ")
    assert moved.endswith(
        f"; expected at most 3 (lose-a, recorded, seed 0; {tmp_path}/asked.toml:8)"
    )
    rows = rows_of(tmp_path / "o", "expectations")
    broken = {(row["consumer_group"], row["figure"]) for row in rows if row["verdict"] == "BROKEN"}
    assert broken == {("checkout", "moved"), ("checkout", "peak_queues"), ("ledger", "peak_queues")}
    assert {row["scenario"] for row in rows} == {"lose-a"}  # the baseline is not meant
    root = ET.parse(junit).getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("10", "3", "0")
    record = json.loads((tmp_path / "o/_run.json").read_text())
    assert record["exit_code"] == 3


def test_figures_are_those_of_the_summary_and_of_its_futures(tmp_path: Path) -> None:
    names = (
        "no_owner_s",
        "orphaned",
        "peak_queues",
        "moved",
        "read_again",
        "left_unread",
        "late_s",
    )
    limits = "".join(f"{name} = 1e9\n" for name in names)
    expect = f"[[expect]]\n{limits}[[expect]]\npercentile = 100\n{limits}"
    assert plan(tmp_path, LOSE_A + expect) == 0
    rows = rows_of(tmp_path / "o", "expectations")
    value = {
        (row["consumer_group"], row["figure"], row["percentile"]): row["value"] for row in rows
    }
    for row in rows_of(tmp_path / "o", "plan_summary"):
        if row["scenario"] == "lose-a":
            means = [value[row["consumer_group"], name, None] for name in names[:6]]
            assert means == [
                row["orphan_queue_seconds"],
                row["orphaned_after"],
                row["peak_queues_after"],
                row["moved"],
                row["read_again"],
                row["left_unread"],
            ]
            assert row["left_unread"] > 0
    for group in ("checkout", "ledger"):
        for name in ("no_owner_s", "late_s"):
            assert value[group, name, 100.0] > value[group, name, None] > 0


def test_groups_that_are_expected_of_are_simulated(tmp_path: Path) -> None:
    expect = '[[expect]]\ngroup = "ledger"\nno_owner_s = 1e9\n'
    assert plan(tmp_path, LOSE_A + expect, "--set", "plan.ownership_groups=0") == 0
    timed = {
        row["consumer_group"]: row["orphan_queue_seconds"] is not None
        for row in rows_of(tmp_path / "o", "plan_summary")
    }
    assert timed == {"checkout": False, "ledger": True}


@pytest.mark.parametrize(
    ("expect", "words", "mistake"),
    [
        ('group = "chekout"\nmoved = 1', (), "matches none of 2 groups; did you mean checkout?"),
        ("late_s = 0", ("--set", "plan.futures=0"), "late_s is not computed: plan.futures is 0"),
        ("no_owner_s = 0", ("--strategy", "STICKY_BALANCED"), "simulated under STICKY_BALANCED"),
        ("moved = 0", ("--strategy", "POP(share_queue_num=2)"), "members share queues under POP"),
        ('group = "ledger"\nmoved = 1', ("--group", "checkout"), "matches none of 1 groups"),
    ],
)
def test_what_would_not_be_judged_is_refused_before_it_runs(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    expect: str,
    words: tuple[str, ...],
    mistake: str,
) -> None:
    for dry_run in ((), ("--dry-run",)):
        assert plan(tmp_path, f"{LOSE_A}[[expect]]\n{expect}\n", *words, *dry_run) == 2
        assert mistake in capsys.readouterr().err
        assert not (tmp_path / "o/plan_steps").exists()


def test_without_offsets_messages_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "asked.toml"
    path.write_text(f"{LOSE_A}[[expect]]\nread_again = 5\nleft_unread = 0\n")
    (tmp_path / "tables").mkdir()
    for name in ("cluster_events", "consumer_groups"):
        shutil.copy(f"{STEADY}/{name}.jsonl", tmp_path / "tables")
    words = ["--input", str(tmp_path / "tables"), "--output", str(tmp_path / "o")]
    assert main(None, ["plan", *words, "--scenario", str(path)]) == 2
    refused = capsys.readouterr().err
    for figure in ("read_again", "left_unread"):
        assert f"asked.toml:8: {figure} is not computed: the input has no queue_offsets" in refused


def test_a_file_for_junit_needs_expectations_and_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "gate.xml"
    assert plan(tmp_path, LOSE_A, "--junit", str(junit)) == 2
    assert "--junit requires [[expect]] tables" in capsys.readouterr().err
    junit.write_text("mine")
    assert plan(tmp_path, f"{LOSE_A}[[expect]]\nmoved = 1\n", "--junit", str(junit)) == 5
    assert "plan did not write this file" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


SEARCH = """
change = "restart"
groups = "*"
[plans]
surge = ["50%"]
unavailable = 0
pause = "0s"
"""


def test_a_search_judges_the_plan_that_it_recommends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect = (
        '[[expect]]\ngroup = "ledger"\nmoved = 1\n'
        "[[expect]]\npercentile = 99\nno_owner_s = 1e6\nread_again = 0\n"
    )
    assert plan(tmp_path, SEARCH + expect, "--json", of="--search") == 3
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    rows = rows_of(tmp_path / "o", "expectations")
    assert len(rows) == 5
    assert facts["expectations"]["kept"] == sum(row["verdict"] == "KEPT" for row in rows) == 2
    chosen = {
        row["consumer_group"]: row
        for row in rows_of(tmp_path / "o", "rollout_plans")
        if row["plan_id"] == facts["chosen"]["plan_id"] and row["consumer_group"] is not None
    }
    for row in rows:
        column = {"moved": "moves", "no_owner_s": "no_owner_queue_seconds_p99"}.get(
            row["figure"], "read_again_p99"
        )
        assert row["value"] == pytest.approx(chosen[row["consumer_group"]][column])


@pytest.mark.parametrize(
    ("expect", "mistake"),
    [
        ("orphaned = 0", "orphaned is not computed: a search does not count this figure"),
        ("moved = 0\npercentile = 9", "moved is computed as a mean, without percentile"),
        ('group = "none"\nmoved = 0', 'group = "none" matches none of 2 groups'),
    ],
)
def test_a_search_that_would_not_judge_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], expect: str, mistake: str
) -> None:
    assert plan(tmp_path, f"{SEARCH}[[expect]]\n{expect}\n", of="--search") == 2
    assert mistake in capsys.readouterr().err
