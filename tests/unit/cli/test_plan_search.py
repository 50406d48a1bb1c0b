"""`plan --search`: its options, what it prints and writes, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.jobs import JOBS, parse_options
from rebalance_core.cli.main import main
from rebalance_core.cli.planning_options import PlanOptions
from rebalance_core.model.errors import UsageError
from rebalance_core.planning.scenario.edit import GroupEdit
from rebalance_core.planning.scenario.file import read_scenarios
from tests.tree import TREE

STEADY = str(TREE / "rebalance_core/bundled/demo/steady/tables")
ASKED = """
change = "restart"
groups = "{groups}"
{more}
[plans]
surge = [1, "50%"]
unavailable = 0
pause = "0s"
start = {{median = "10s", spread = "0s"}}
"""


def search_file(folder: Path, groups: str = "checkout", more: str = "") -> str:
    path = folder / "search.toml"
    path.write_text(ASKED.format(groups=groups, more=more))
    return str(path)


def words(*more: str) -> list[str]:
    return ["plan", "--input", STEADY, *more]


def mistakes(*more: str) -> str:
    with pytest.raises(UsageError) as error:
        parse_options([*words("--output", "o"), *more], JOBS)
    return str(error.value)


def test_a_search_excludes_scenarios_and_strategies(tmp_path: Path) -> None:
    search = ("--search", search_file(tmp_path))
    assert "--search and --strategy exclude each other" in mistakes(*search, "--strategy", "AVG")
    assert "--search and --seeds exclude each other" in mistakes(*search, "--seeds", "2")
    assert "--search and --group exclude each other" in mistakes(*search, "--group", "g")
    assert "--fail-on budget requires --search" in mistakes("--fail-on", "budget")
    assert "--fail-on buget: one of budget" in mistakes(*search, "--fail-on", "buget")
    assert "none.toml: no such file" in mistakes("--search", "none.toml")


def test_a_bundled_search_is_named() -> None:
    _, options = parse_options(words("--output", "o", "--search", "restart"), JOBS)
    assert isinstance(options, PlanOptions)
    assert options.searched is not None
    assert options.searched.groups == "*"
    _, options = parse_options(words("--output", "o", "--search", "restart-each-group"), JOBS)
    assert isinstance(options, PlanOptions)
    assert options.searched is not None
    assert options.searched.decide == "group"


def test_what_is_written_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "o"
    search = search_file(tmp_path, more="[budgets]\nmax_read_again = 5\n")
    asked = ("--search", search, "--holder-seeds", "3", "--json")
    code = main(None, words("--output", str(output), *asked))
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == facts["exit_code"] == 0
    assert facts["within_budget"] is False
    assert facts["recommendation"][0].startswith("NO PLAN KEEPS THE BUDGETS")
    assert "max_read_again = 5: no plan keeps it" in "\n".join(facts["recommendation"])
    assert facts["default"]["plan_id"] == "surge 25%, unavailable 25%, pause 0s, replica_set"
    plans = pq.read_table(output / "rollout_plans").to_pylist()
    assert [row["consumer_group"] for row in plans] == [None] * 3
    assert {row["plan_id"] for row in plans} >= {facts["chosen"]["plan_id"]}
    assert pq.read_table(output / "handovers").num_rows > 0
    held = pq.read_table(output / "holders").to_pylist()
    assert {(row["consumer_group"], row["seed"]) for row in held} == {
        ("checkout", seed) for seed in range(3)
    }
    (scenario,) = read_scenarios([output / "rollout.toml"])
    assert scenario.description == facts["chosen"]["plan_id"]
    assert "maxSurge: 50%" in (output / "strategy.yaml").read_text()
    assert (output / "front.svg").read_text().startswith("<?xml")
    again = ["--output", str(output), "--search", search, "--fail-on", "budget", "--overwrite"]
    assert main(None, words(*again)) == 3
    said = capsys.readouterr().out
    assert "The chosen plan (*), the default of Kubernetes, the front" in said


def test_a_decision_for_each_group_is_that_of_its_own_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = "[budgets]\nmax_no_owner_s = 60\n"
    both = search_file(tmp_path, groups="*", more=f'decide = "group"\n{budget}')
    output = tmp_path / "both"
    asked = words("--output", str(output), "--search", both, "--holder-seeds", "1")
    assert main(None, asked) == 0
    said = capsys.readouterr().out
    assert "The plan chosen for each group; * the default of Kubernetes" in said
    decisions = pq.read_table(output / "rollout_decisions").to_pylist()
    assert [row["consumer_group"] for row in decisions] == ["checkout", "ledger"]
    for decision in decisions:
        group = decision["consumer_group"]
        alone = tmp_path / group
        search = search_file(tmp_path, groups=group, more=budget)
        own_words = ("--search", search, "--holder-seeds", "1", "--json")
        assert main(None, words("--output", str(alone), *own_words)) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["decisions"] == [decision]
        assert facts["chosen"]["plan_id"] == decision["plan_id"]
        assert ("kept" if decision["within_budget"] else "MISSED") in said
        for name in ("handovers", "holders"):
            rows = pq.read_table(output / name).to_pylist()
            own = [row for row in rows if row["consumer_group"] == group]
            assert own == pq.read_table(alone / name).to_pylist()
        plans = [
            row
            for row in pq.read_table(output / "rollout_plans").to_pylist()
            if row["consumer_group"] == group
        ]
        named = {"cluster": decision["cluster"], "consumer_group": group}
        assert plans == [row | named for row in pq.read_table(alone / "rollout_plans").to_pylist()]
    (scenario,) = read_scenarios([output / "rollout.toml"])
    deployed = [edit.group for edit in scenario.edits if isinstance(edit, GroupEdit)]
    assert deployed == [("checkout",), ("ledger",)]
    documents = (output / "strategy.yaml").read_text().split("---\n")
    assert ['"DefaultCluster/checkout"' in documents[0], len(documents)] == [True, 2]
    missed = not all(row["within_budget"] for row in decisions)
    again = ("--output", str(output), "--search", both, "--fail-on", "budget", "--overwrite")
    assert main(None, words(*again)) == (3 if missed else 0)


def test_one_decision_for_all_has_a_row_for_each_group(tmp_path: Path) -> None:
    output = tmp_path / "o"
    search = search_file(tmp_path, groups="*")
    assert main(None, words("--output", str(output), "--search", search)) == 0
    decisions = pq.read_table(output / "rollout_decisions").to_pylist()
    assert len({row["plan_id"] for row in decisions}) == 1
    plans = pq.read_table(output / "rollout_plans").to_pylist()
    for row in decisions:
        of = {
            each["plan_id"]: each
            for each in plans
            if each["consumer_group"] == row["consumer_group"]
        }
        assert row["cost"] == of[row["plan_id"]]["cost"]
        default = of["surge 25%, unavailable 25%, pause 0s, replica_set"]
        assert row["default_cost"] == default["cost"]


def test_what_is_decided_is_one_of_two(tmp_path: Path) -> None:
    path = search_file(tmp_path, more='decide = "pod"')
    assert "decide = 'pod': expected one of together, group" in mistakes("--search", path)


def test_a_change_that_names_no_member_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = search_file(tmp_path, groups="nobody")
    assert main(None, words("--output", str(tmp_path / "o"), "--search", search)) == 4
    assert "nobody matches no group" in capsys.readouterr().err


def test_a_dry_run_ends_as_the_search_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ("--output", str(tmp_path / "o"), "--dry-run")
    assert main(None, words(*output, "--search", search_file(tmp_path))) == 0
    assert "search.toml: from 20 to 1,000 futures" in capsys.readouterr().out
    assert main(None, words(*output, "--search", search_file(tmp_path, groups="nobody"))) == 4
    assert not (tmp_path / "o").exists()
