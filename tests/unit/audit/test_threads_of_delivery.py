"""Public threads about delivery in 5.x: each is answered, or refused with the reason, somewhere."""

import re

import pytest

from rebalance_core.audit.known_issues import known_issues
from rebalance_core.audit.registry import ALL_RULES
from tests.tree import TREE

CANNOT_SHOW = "docs/audit-rules.md"
"""Its table of what files cannot show names the thread, with the reason and what would show it."""
RULES_OF_THREADS = "docs/rocketmq.md"
"""Its table of rules names the thread."""

ROCKETMQ, CLIENTS = "apache/rocketmq", "apache/rocketmq-clients"
REFUSED = {
    f"{ROCKETMQ}#9123",
    f"{ROCKETMQ}#7570",
    f"{ROCKETMQ}#7724",
    f"{ROCKETMQ}#7914",
    f"{ROCKETMQ}#10276",
    f"{ROCKETMQ}#3521",
    f"{ROCKETMQ}#8657",
    f"{ROCKETMQ}#10058",
    f"{ROCKETMQ}#10278",
    f"{CLIENTS}#1308",
    f"{CLIENTS}#1168",
    f"{CLIENTS}#1344",
}
KNOWN_ISSUES = {
    f"{ROCKETMQ}#8479": "REVIVE_STUCK",
    f"{ROCKETMQ}#9956": "REVIVE_STUCK",
    f"{ROCKETMQ}#7412": "REVIVE_STUCK",
    f"{ROCKETMQ}#9583": "REVIVE_REPEATS",
    f"{ROCKETMQ}#9145": "RECEIVE_STARVES",
    f"{ROCKETMQ}#9038": "RESET_NOT_KEPT",
    f"{CLIENTS}#655": "RECEIVE_STARVES",
    f"{CLIENTS}#1096": "REVIVE_REPEATS",
    f"{CLIENTS}#1198": "REVIVE_REPEATS",
    f"{CLIENTS}#1321": "POP_ORDER_BLOCKED",
}
OF_RULES = {
    f"{ROCKETMQ}#7117": "START_SKIPPED",
    f"{ROCKETMQ}#3443": "REVIVE_STUCK",
    f"{CLIENTS}#718": "RECEIVE_STARVES",
    f"{CLIENTS}#913": "RECEIVE_STARVES",
}


def rows_of(page: str) -> list[str]:
    return [line for line in (TREE / page).read_text().splitlines() if line.startswith("|")]


def names(row: str, thread: str) -> bool:
    """Whether a row of a table names the thread: the clients' after the name of the repository."""
    repository, _, number = thread.rpartition("#")
    if repository == CLIENTS:
        row = row.partition("rocketmq-clients")[2]
    return re.search(rf"#{number}\b", row) is not None


@pytest.mark.parametrize("thread", sorted(REFUSED))
def test_refused_with_the_reason(thread: str) -> None:
    (row,) = (row for row in rows_of(CANNOT_SHOW) if names(row, thread))
    what, why, instead = (cell.strip() for cell in row.strip("|").split(" | "))
    assert all((what, instead))
    assert len(why.split()) >= 8


@pytest.mark.parametrize("thread", sorted(KNOWN_ISSUES))
def test_named_by_a_known_issue(thread: str) -> None:
    (issue,) = (issue for issue in known_issues() if issue.id == thread)
    assert KNOWN_ISSUES[thread] in issue.rules


@pytest.mark.parametrize("thread", sorted(OF_RULES))
def test_named_beside_its_rule(thread: str) -> None:
    (row,) = (row for row in rows_of(RULES_OF_THREADS) if names(row, thread))
    assert f"`{OF_RULES[thread]}`" in row
    assert OF_RULES[thread] in {rule.rule_id for rule in ALL_RULES}
