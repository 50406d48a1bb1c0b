"""Files' expectations: what is read, what is refused, and how figures are judged."""

from operator import itemgetter

import pytest

from rebalance_core.contracts.rows import ExpectationsBegun
from rebalance_core.model.errors import UsageError
from rebalance_core.planning.expectations import (
    Computed,
    Expectation,
    judged,
    read_expectations,
    refuse_unjudged,
    sentence,
)
from rebalance_core.planning.rollout.search import parse_search
from rebalance_core.planning.scenario.file import parse_scenario
from rebalance_core.planning.toml_lines import TomlLines

SCENARIO = 'name = "s"\ndescription = "d"\n'
GROUPS = [("c", "orders"), ("c", "invoices"), ("d", "orders")]
VARIANT: ExpectationsBegun = {
    "cluster": "c",
    "consumer_group": "orders",
    "scenario": "s",
    "strategy": "AVG",
    "of_rocketmq": True,
    "seed": 3,
}


def read(text: str) -> tuple[tuple[Expectation, ...], list[str]]:
    mistakes: list[str] = []
    return parse_scenario(SCENARIO + text, "s.toml", mistakes).expectations, mistakes


def test_scenarios_and_searches_have_the_same_tables() -> None:
    text = '[[expect]]\ngroup = "o*"\norphaned = 0\n[[expect]]\npercentile = 99\nno_owner_s = 1.5\n'
    expectations, mistakes = read(text)
    assert mistakes == []
    assert [each.limits for each in expectations] == [{"orphaned": 0.0}, {"no_owner_s": 1.5}]
    assert [each.place for each in expectations] == ["s.toml:3", "s.toml:6"]
    assert [each.percentile for each in expectations] == [None, 99.0]
    search = parse_search(f'change = "restart"\ngroups = "g"\n{text}', "r.toml")
    assert search.expectations == expectations


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("orphan = 0", "s.toml:4: unknown key orphan of expect; did you mean orphaned?"),
        ("orphaned = -1", "s.toml:4: orphaned = -1: expected a number from 0 up"),
        ("orphaned = nan", "s.toml:4: orphaned = nan: expected a number from 0 up"),
        ("moved = 1\npercentile = 101", "s.toml:5: percentile = 101: expected a number above 0"),
        ('group = "x"', "s.toml:3: expect limits nothing; expected at least one of no_owner_s"),
    ],
)
def test_a_mistake_has_its_line(text: str, mistake: str) -> None:
    _, mistakes = read(f"[[expect]]\n{text}\n")
    assert mistake in "\n".join(mistakes)


def test_a_single_table_is_a_mistake() -> None:
    mistakes: list[str] = []
    lines = TomlLines("[expect]\nmoved = 1\n")
    assert read_expectations({"moved": 1}, "f", lines, mistakes) == ()
    assert mistakes == ["f:1: expect must be tables that begin with [[expect]]"]


def test_what_would_not_be_judged_is_refused_at_once() -> None:
    (order, everywhere, mean), _ = read(
        '[[expect]]\ngroup = ["orders", "order"]\nread_again = 1\n'
        '[[expect]]\ncluster = "e"\nmoved = 1\n'
        "[[expect]]\nmoved = 1\npercentile = 50\n"
    )
    with pytest.raises(UsageError) as refused:
        refuse_unjudged([order, everywhere, mean], GROUPS, {"read_again": "why"}, ["moved"])
    assert str(refused.value).splitlines() == [
        's.toml:3: group = "order" matches none of 2 groups; did you mean orders?',
        "s.toml:3: read_again is not computed: why",
        's.toml:6: cluster = "e" matches no cluster',
        's.toml:6: group = "*" matches none of 0 groups',
        "s.toml:9: moved is computed as a mean, without percentile",
    ]
    refuse_unjudged([mean], GROUPS, {"read_again": "why"})


def test_a_limit_is_the_most_of_the_mean_or_of_a_share_of_the_futures() -> None:
    expectations, _ = read(
        '[[expect]]\ngroup = "orders"\nno_owner_s = 2.5\nmoved = 4\n'
        "[[expect]]\nno_owner_s = 2.5\npercentile = 75\nread_again = 9\n"
        '[[expect]]\ngroup = "invoices"\nmoved = 0\n'
    )
    computed = Computed({"no_owner_s": 2.5, "moved": 5}, {"no_owner_s": [1, 3, 2, 4]}, "no rate")
    rows = list(judged(expectations, VARIANT, computed))
    shown = itemgetter("expectation", "figure", "value", "verdict", "reason")
    assert [shown(row) for row in rows] == [
        (1, "no_owner_s", 2.5, "KEPT", None),
        (1, "moved", 5, "BROKEN", None),
        (2, "no_owner_s", 3.0, "BROKEN", None),
        (2, "read_again", None, "UNKNOWN", "no rate"),
    ]
    assert sentence(rows[2], "s.toml:6") == (
        "BROKEN c/orders: no_owner_s 3 in 75 % of the futures; expected at most 2.5 "
        "(s, AVG, seed 3; s.toml:6)"
    )
    assert sentence(rows[3], "s.toml:6") == (
        "UNKNOWN c/orders: read_again not known (no rate) in 75 % of the futures; expected at most "
        "9 (s, AVG, seed 3; s.toml:6)"
    )
