import json
from typing import Any

import pytest

from rebalance_core.cli.simulate import render_summary, summary_facts, what_is_wrong

QUIET: dict[str, Any] = {
    "cluster": "c1",
    "consumer_group": "orders",
    "epochs": 3,
    "moved": 12,
    "orphaned": 0,
    "shared": 0,
    "failed_starts": 0,
    "status": "SETTLED",
    "queues": 8,
    "first_ms": 0,
    "last_ms": 1795231709901,
}


def facts(*groups: dict[str, Any]) -> dict[str, Any]:
    ledger: Any = {
        "groups": 1200,
        "epochs": 5300,
        "moved": 20,
        "orphaned": 3,
        "shared": 0,
        "failed_starts": 1,
        "first_ms": 0,
        "last_ms": 1795231709901,
        "worst_groups": list(groups),
    }
    return summary_facts(
        "out", ledger, {"BAD_JSON": 2}, {"epochs": 5300, "rejected": 2}, 4.2, "spark"
    )


def test_the_whole_page() -> None:
    bad = QUIET | {"consumer_group": "pay", "orphaned": 3, "failed_starts": 1}
    assert render_summary(facts(bad, QUIET)).splitlines() == [
        "Ledger in out (4.2 s on Spark)",
        "Changes from 1970-01-01 00:00:00Z to 2026-11-21 03:28:29Z",
        "",
        "  groups               1,200",
        "  epochs               5,300",
        "  queues moved            20  over the whole period",
        "  without an owner         3  now",
        "  with several owners      0  now",
        "  failed starts            1  new owners that cannot start to pull",
        "  rejected rows            2  BAD_JSON 2",
        "",
        "The 2 worst groups",
        "  group   last change           orphaned  shared  failed  moved  what is wrong",
        "  pay     2026-11-21 03:28:29Z         3       0       1     12  "
        "3 queues of 8 without a reader; 1 start failed",
        "  orders  2026-11-21 03:28:29Z         0       0       0     12  nothing",
    ]


def test_what_was_not_made_has_no_figure() -> None:
    """`--tables epochs`: neither how much moved nor which starts failed is known."""
    unknown = {"moved": None, "failed_starts": None}
    page = render_summary(facts(QUIET | unknown) | unknown)
    assert "queues moved" not in page
    assert "failed starts" not in page
    assert page.splitlines()[-1].split() == [
        "orders",
        "2026-11-21",
        "03:28:29Z",
        "0",
        "0",
        "nothing",
    ]


def test_clusters_are_named_when_there_are_several() -> None:
    text = render_summary(facts(QUIET, QUIET | {"cluster": "c2"}))
    assert "c1/orders" in text
    assert "c2/orders" in text


def test_no_group_at_all() -> None:
    empty = facts() | {"groups": 0, "first_ms": None, "last_ms": None}
    assert "Changes from - to -" in render_summary(empty)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "nothing"),
        ({"status": "EMPTY", "orphaned": 8}, "the group has no member left to read its queues"),
        (
            {"status": "FROZEN"},
            "a topic cannot be allocated (no readable queue, or the strategy throws): members "
            "keep the queues that they held",
        ),
        ({"orphaned": 1, "shared": 2}, "1 queue of 8 without a reader; 2 queues read by several "),
    ],
)
def test_one_sentence_per_group(change: dict[str, Any], said: str) -> None:
    group: Any = QUIET | change
    assert what_is_wrong(group).startswith(said)


def test_the_same_facts_are_one_json_object() -> None:
    read = json.loads(json.dumps(facts(QUIET)))
    assert (read["job"], read["exit_code"], read["rows"]["epochs"]) == ("simulate", 0, 5300)
    assert read["worst_groups"][0]["consumer_group"] == "orders"
