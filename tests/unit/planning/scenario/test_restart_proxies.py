"""restart_proxies: where clients go, what is assumed of where they are, and what is refused."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.planning.scenario.file import parse_scenario
from rebalance_core.planning.sweep.proxy_restarts import proxy_figures
from tests.unit.planning.scenario.groups import (
    CLUSTER,
    END_MS,
    GROUP,
    dump,
    edited,
    join,
    numbered,
    process,
    replayed,
    scenario,
    topic,
)

Row = dict[str, Any]
KIND = 'kind = "restart_proxies"; at = "+1m"'
AT_MS = END_MS + 60_000
SCHEMA = INPUT_TABLES["cluster_events"].arrow_schema()


def proxied(*proxies: str | None) -> list[Row]:
    """A topic and a member at each of these proxies; None: no row states which."""
    rows = [topic(0, 4)]
    for number, proxy in enumerate(proxies, 1):
        source = "dump:1" if proxy is None else f"proxy/{proxy}/broker.log:{number}"
        rows.append(join(END_MS, number, rebalance_mode="PROXY", source=source))
    return numbered(rows)


def changes(rows: list[Row]) -> list[tuple[str, str, int]]:
    """Type, client and ms after the first stop of what the edit added."""
    return [
        (row["event_type"].removeprefix("CONSUMER_"), row["client_id"], row["event_ms"] - AT_MS)
        for row in rows
        if (row["source"] or "").startswith("s#")
    ]


def figures(rows: list[Row], *edits: str) -> Row | None:
    table = pa.Table.from_pylist([row | {"cluster": CLUSTER} for row in rows], SCHEMA)
    found = proxy_figures(table, scenario(*edits)).to_pylist()
    return found[0] if found else None


FIRST, SECOND = process(1)["client_id"], process(2)["client_id"]


def test_clients_of_the_proxy_connect_to_another_one_under_their_id() -> None:
    before = proxied("p1", "p2")
    rows, said = edited(before, f'{KIND}; proxy = "p1"; how = "killed"')
    assert said == ()
    assert changes(rows) == [("LOST", FIRST, 0), ("JOIN", FIRST, 1_000)]
    lost, back = rows[-2:]
    assert (lost["detail"], back["rebalance_mode"]) == ("CLOSED", "PROXY")
    assert back["channel_id"] != lost["channel_id"] == process(1)["channel_id"]
    ledger = replayed(rows)
    assert [epoch["members"] for epoch in ledger["epochs"][-3:]] == [2, 1, 2]
    clients = [row for row in ledger["pop_reach"] if row["to_epoch"] is None]
    assert {row["client_id"] for row in clients} == {FIRST, SECOND}


def test_all_in_turn_and_who_moved_moves_again() -> None:
    rows, _ = edited(proxied("p1", "p2"), f'{KIND}; proxy = "*"; every = "2m"')
    assert changes(rows) == [
        ("LOST", FIRST, 0),
        ("JOIN", FIRST, 1_000),
        ("LOST", FIRST, 120_000),
        ("LOST", SECOND, 120_000),
        ("JOIN", FIRST, 121_000),
        ("JOIN", SECOND, 121_000),
    ]


def test_the_clients_of_a_lone_proxy_wait_until_it_is_back() -> None:
    edit = f'{KIND}; proxy = "p1"; back_after = "45s"'
    rows, _ = edited(proxied("p1", "p1"), edit)
    assert changes(rows)[2:] == [("JOIN", FIRST, 46_000), ("JOIN", SECOND, 46_000)]
    assert figures(rows, edit) == {
        "cluster": CLUSTER,
        "consumer_group": GROUP,
        "proxy_clients": 2,
        "proxy_wait_s": 56.0,
        "proxy_repeat_s": 40.0,
    }
    assert replayed(rows)["epochs"][-2]["status"] == "EMPTY"


@pytest.mark.parametrize(
    ("how", "wait_s", "repeat_s"), [("stopped", 11.0, 40.0), ("killed", 64.0, 64.0)]
)
def test_what_a_stop_and_a_kill_cost(how: str, wait_s: float, repeat_s: float) -> None:
    edit = f'{KIND}; proxy = "p1"; how = "{how}"'
    found = figures(edited(proxied("p1", "p2"), edit)[0], edit)
    assert found is not None
    assert (found["proxy_clients"], found["proxy_wait_s"]) == (1, wait_s)
    assert found["proxy_repeat_s"] == repeat_s


def test_a_proxy_without_clients_of_the_group_costs_it_nothing() -> None:
    edit = f'{KIND}; proxy = "p2"'
    others = [row | {"consumer_group": "h"} for row in proxied("p2") if "client_id" in row]
    before = numbered([*proxied("p1"), *others])
    rows, _ = edited(before, f'{edit}; group = "g"')
    assert (changes(rows), figures(rows, edit)) == ([], None)


@pytest.mark.parametrize("seed", range(5))
def test_clients_that_no_row_places_are_shared_out_and_that_is_said(seed: int) -> None:
    edit = f'{KIND}; proxy = ["a", "b"]; proxies = 4'
    rows, said = edited(proxied(*[None] * 8), edit, seed=seed)
    assert said == (
        "s#1: no row states to which of 4 proxies 8 clients of g are connected; even shares are "
        "assumed",
    )
    stops = Counter(at for kind, _, at in changes(rows) if kind == "LOST")
    assert stops[0] == 2
    assert stops[60_000] in range(2, 5)  # those that moved may have gone to b
    assert edited(proxied(*[None] * 8), edit, seed=seed) == (rows, said)


def test_a_member_that_leaves_meanwhile_does_not_come_back() -> None:
    leaves = 'kind = "remove_consumers"; at = "+1m"; group = "g"; client_id = "10.0.0.1@*"'
    rows, _ = edited(proxied("p1", "p2"), leaves, f'{KIND}; proxy = "p1"')
    assert changes(rows) == [("LEAVE", FIRST, 0)]


def test_members_at_brokers_stay() -> None:
    direct = [row | {"rebalance_mode": "CLIENT"} for row in proxied("p1") if "client_id" in row]
    other = [row | process(9) for row in direct]
    rows, _ = edited(numbered([*proxied("p1", "p2"), *other]), f'{KIND}; proxy = "*"; every = "1s"')
    assert process(9)["client_id"] not in {client for _, client, _ in changes(rows)}


@pytest.mark.parametrize(
    ("rows", "keys", "message"),
    [
        (proxied("p1", "p2"), 'proxy = "p3"', 'proxy = "p3" matches none of 2 proxies'),
        (proxied("p1"), 'proxy = ["p1", "x*"]', 'proxy = "x*" matches none of 1 proxies'),
        (proxied(None), 'proxy = "p1"', 'proxy = "p1" is not known: no row comes from a log'),
        (proxied(None), 'proxy = "p*"; proxies = 2', 'proxy = "p*" is a pattern'),
        (proxied(None), 'proxy = ["a", "b"]; proxies = 1', "proxies = 1: proxy names 2"),
        (proxied("p1", "p2"), 'proxy = "p1"; proxies = 1', "proxies = 1: rows name 2 (p1, p2)"),
    ],
)
def test_unknown_proxies_are_refused(rows: list[Row], keys: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        edited(rows, f"{KIND}; {keys}")
    assert message in str(refused.value)
    assert str(refused.value).startswith("s.toml:")


def test_proxies_of_which_no_log_was_collected_count() -> None:
    """One log of three: the others' clients are not at that proxy alone."""
    rows = proxied("p1", *[None] * 6)
    lost = [
        Counter(kind for kind, *_ in changes(edited(rows, f'{KIND}; proxy = "p1"{more}')[0]))[
            "LOST"
        ]
        for more in ("", "; proxies = 3")
    ]
    assert lost == [7, 3]


def test_a_cluster_whose_rows_name_no_proxy_has_none_of_another_s() -> None:
    both = [*proxied("p1"), *(row | {"cluster": "other"} for row in proxied(None))]
    with pytest.raises(InputRefused, match="no row of the cluster of g names a proxy"):
        edited(both, f'{KIND}; proxy = "*"')
    rows, _ = edited(both, f'{KIND}; proxy = "p1"; proxies = 2')
    assert len([change for change in changes(rows) if change[0] == "LOST"]) == 2


def test_a_group_without_proxies_is_refused_by_name_and_passed_over_by_pattern() -> None:
    edit = f'{KIND}; proxy = "p1"; proxies = 2'
    with pytest.raises(InputRefused) as refused:
        edited(dump(), f'{edit}; group = "g"')
    assert "s#1: g has no member behind a proxy at that time" in str(refused.value)
    rows, said = edited(dump(), f'{edit}; group = "g*"')
    assert (changes(rows), said) == ([], ())


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('how = "killed"', "restart_proxies needs proxy"),
        ('proxy = "p1"; how = "kill"', "expected one of stopped, killed"),
        ('proxy = "p1"; proxies = 0', "expected a whole number from 1"),
        ('proxy = "p1"; back = "5s"', "unknown key back of restart_proxies"),
    ],
)
def test_mistakes_in_the_file(keys: str, message: str) -> None:
    mistakes: list[str] = []
    tables = "\n".join(["[[edit]]", *f"{KIND}; {keys}".split("; ")])
    parse_scenario(f'name = "s"\ndescription = "d"\n{tables}', "s.toml", mistakes)
    assert len(mistakes) == 1
    assert message in mistakes[0]
