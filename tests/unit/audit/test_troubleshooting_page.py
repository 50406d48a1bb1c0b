"""docs/troubleshooting.md names rules that there are, and commands that parse."""

import re
import shlex

from rebalance_core.audit.registry import MEANINGS
from rebalance_core.cli.jobs import JOBS, option_names
from tests.tree import TREE

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
