"""The pages about rules and troubleshooting."""

import re
import shlex

from rebalance_core.audit.registry import ALL_RULES, MEANINGS
from rebalance_core.cli.jobs import JOBS, option_names
from rebalance_core.model.verdicts import SEVERITIES
from tests.tree import TREE

# What docs/audit-rules.md is generated from, and what other pages say of the rules.


def test_every_rule_is_whole_and_there_once() -> None:
    ids = [rule.rule_id for rule in ALL_RULES]
    assert len(ids) == len(set(ids))
    for rule in ALL_RULES:
        assert rule.severity in SEVERITIES
        assert rule.rule_id == rule.rule_id.upper()
        assert all(text.endswith(".") for text in (rule.meaning, rule.remedy)), rule.rule_id
        assert rule.seen_by


def test_threads_are_of_rules_that_there_are() -> None:
    page = (TREE / "docs/rocketmq.md").read_text("utf-8")
    table = page.partition("## 11. Pathologies")[2].partition("## 12.")[0]
    rows = [line for line in table.splitlines() if re.match(r"\| `", line)]
    named = [re.findall(r"`([A-Z_]+)`", row) for row in rows]
    assert len(named) == 22
    assert all(named)
    assert {one for row in named for one in row} <= {rule.rule_id for rule in ALL_RULES}


# docs/troubleshooting.md names rules that there are, and commands that parse.

PAGE = (TREE / "docs/troubleshooting.md").read_text("utf-8")
NO_RULES = {"BROKER_ZERO"}


def test_its_rules_are_there() -> None:
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", PAGE)) - NO_RULES
    assert len(named) > 30
    assert named <= MEANINGS.keys(), named - MEANINGS.keys()


def test_its_commands_have_these_options() -> None:
    commands = re.findall(r"`(rebalance [^`]+)`", PAGE)
    assert len(commands) >= 4
    for command in commands:
        _, job, *words = shlex.split(command)
        options = {word for word in words if word.startswith("--")}
        assert options <= set(option_names(JOBS[job])), command
