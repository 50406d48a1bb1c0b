"""Plans of each single loss: the rows of files written by hand, ranked, and what is printed."""

import json
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.cli.main import main
from rebalance_core.contracts import ALL_TABLES
from tests.plans import Row, differing, rows_of
from tests.tree import TREE

NIGHTLY = str(TREE / "tests/recordings/data/nightly/tables")
HEAD = 'name = "{name}"\ndescription = "d"\n[[edit]]\nkind = "lose_broker"\nat = "+10m"\n'
PARTS = ("plan_steps", "plan_summary", "plan_ownership", "expectations")


def plan(folder: Path, files: dict[str, str], *words: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    named = [str(folder / f"{name}.toml") for name in files]
    output = ["--output", str(folder / "o"), "--set", "plan.futures=2"]
    assert main(None, ["plan", "--input", NIGHTLY, *output, "--scenario", *named, *words]) == 0
    return folder / "o"


def of_losses(output: Path, table: str) -> list[Row]:
    rows = [{**row, "scenario": Path(row["scenario"]).name} for row in rows_of(output, table)]
    return sorted(rows, key=lambda row: [row[name] for name in ALL_TABLES[table].key])


def test_each_gives_the_rows_of_files_written_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect = "[[expect]]\norphaned = 1000\n"
    each = {"any": f'{HEAD.format(name="any")}each = "broker"\n{expect}'}
    by_hand = {
        name: f'{HEAD.format(name=name)}broker = "{name}"\n{expect}'
        for name in ("broker-a", "broker-b", "broker-c")
    }
    made = plan(tmp_path / "each", each, "--json")
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    hand = plan(tmp_path / "hand", by_hand)
    for table in PARTS:
        assert differing(of_losses(made, table), of_losses(hand, table)) == [], table
    assert rows_of(hand, "losses") == []
    losses = rows_of(made, "losses")
    assert {(row["scenario"], row["each"], row["object"]) for row in losses} == {
        (f"any/{name}", "broker", name) for name in by_hand
    }
    summary = {
        (row["consumer_group"], row["scenario"]): row for row in rows_of(made, "plan_summary")
    }
    by_group: dict[str, list[Row]] = {}
    for row in losses:
        of = summary[row["consumer_group"], row["scenario"]]
        columns = ("orphaned_after", "orphaned_before", "orphan_queue_seconds", "moved")
        figures = [row[name] for name in ("orphaned", "orphaned_before", "no_owner_s", "moved")]
        assert figures == [of[name] for name in columns]
        by_group.setdefault(row["consumer_group"], []).append(row)
    for rows in by_group.values():
        ordered = sorted(rows, key=lambda row: row["rank"])
        assert [row["rank"] for row in ordered] == [1, 2, 3]
        taken = [max(0, row["orphaned"] - row["orphaned_before"]) for row in ordered]
        assert taken[0] == max(taken)
    assert len(facts["losses"]) == len(by_group) > 5


def test_the_worst_loss_of_each_group_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit = '[[edit]]\nkind = "remove_consumers"\nat = "+10m"\ngroup = "notify"\neach = "member"\n'
    text = f'name = "any"\ndescription = "d"\n{edit}'
    output = plan(tmp_path / "each", {"any": text}, "--group", "notify")
    said = capsys.readouterr().out
    assert "Worst single loss of each group" in said
    assert "any/" not in said  # no table for each member
    losses = rows_of(output, "losses")
    assert len({row["object"] for row in losses}) == len(losses) > 1
    assert {row["members"] for row in losses} == {len(losses) - 1}
    (worst,) = [row for row in losses if row["rank"] == 1]
    assert f"member {worst['object']}" in said
