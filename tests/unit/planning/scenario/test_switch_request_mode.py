"""switch_request_mode: the rows it makes, what a group makes of them, and what is refused."""

from typing import Any

import pytest

from rebalance_core.planning.scenario.file import parse_scenario
from tests.unit.planning.scenario.groups import (
    END_MS,
    GROUP,
    dump,
    edited,
    event,
    join,
    numbered,
    replayed,
    scenario,
    topic,
    types,
)

POPS = 'kind = "switch_request_mode"; group = "g"; mode = "POP"; share_queue_num = 1'
ASKS = '; rebalance_mode = "BROKER"'


def mode(at_ms: int, detail: str, name: str = "T") -> dict[str, Any]:
    return event(at_ms, "REQUEST_MODE", consumer_group=GROUP, topic=name, detail=detail)


def modes(rows: list[dict[str, Any]]) -> list[tuple[int, str, str]]:
    return [
        (row["event_ms"], row["topic"], row["detail"])
        for row in rows
        if row["event_type"] == "REQUEST_MODE"
    ]


def mistakes_of(text: str) -> list[str]:
    mistakes: list[str] = []
    tables = "\n".join(["[[edit]]", *text.split("; ")])
    parse_scenario(f'name = "s"\ndescription = "d"\n{tables}', "s.toml", mistakes)
    return mistakes


def test_the_mode_is_set_and_the_members_ask_the_broker() -> None:
    rows, said = edited(dump(), POPS + ASKS)
    assert said == ()
    assert modes(rows) == [(END_MS + 1, "T", "POP(share_queue_num=1)")]
    assert {r["rebalance_mode"] for r in rows if r["event_ms"] > END_MS and r["client_id"]} == {
        "BROKER"
    }
    ledger = replayed(rows)
    assert ledger["epochs"][-1]["queues"] == 2  # the retry topic's: T has no exclusive owner
    assert {row["topic"] for row in ledger["ownership"] if row["to_epoch"] is None} == {"%RETRY%g"}


def test_back_to_pull_every_queue_has_an_owner() -> None:
    back = 'kind = "switch_request_mode"; at = "+1m"; group = "g"; mode = "PULL"'
    rows, said = edited(dump(), POPS + ASKS, back)
    assert said == ()
    assert [detail for _, _, detail in modes(rows)] == ["POP(share_queue_num=1)", "PULL"]
    assert replayed(rows)["epochs"][-1]["queues"] == 18


def test_who_joins_later_asks_too() -> None:
    rows, _ = edited(
        dump(), POPS + ASKS, 'kind = "add_consumers"; at = "+1m"; group = "g"; count = 2'
    )
    assert [row["rebalance_mode"] for row in rows[-2:]] == ["BROKER"] * 2


def test_clients_that_divide_themselves_are_reported() -> None:
    before = dump()
    rows, said = edited(before, POPS)
    assert said == (
        "s#1: no member of g queries a broker, so the mode has no effect; "
        'set rebalance_mode = "BROKER" to make them query brokers',
    )
    assert types(rows, before) == ["REQUEST_MODE"]
    assert replayed(rows)["epochs"][-1]["queues"] == 18


def test_members_that_ask_already_need_no_more() -> None:
    before = numbered([topic(0, 4), join(5, 1, rebalance_mode="BROKER")])
    rows, said = edited(before, POPS)
    assert said == ()
    assert types(rows, before) == ["REQUEST_MODE"]


def test_a_mode_that_the_history_sets_later_is_dropped() -> None:
    before = numbered(
        [topic(0, 4), join(5, 1), mode(60_000, "PULL"), mode(60_000, "PULL", "U"), join(90_000, 2)]
    )
    rows, _ = edited(before, POPS + '; topic = "T"; at = "-1m"')
    assert modes(rows) == [(30_000, "T", "POP(share_queue_num=1)"), (60_000, "U", "PULL")]


def test_a_topic_named_outright_need_not_be_there_yet() -> None:
    rows, _ = edited(
        dump(), 'kind = "switch_request_mode"; group = "g"; topic = ["New", "T*"]; mode = "POP"'
    )
    assert [(name, detail) for _, name, detail in modes(rows)] == [
        ("New", "POP(share_queue_num=-1)"),
        ("T", "POP(share_queue_num=-1)"),
    ]


def test_retry_topics_are_always_pulled() -> None:
    rows, said = edited(
        dump(), 'kind = "switch_request_mode"; group = "g"; topic = "%RETRY%g"; mode = "POP"'
    )
    assert modes(rows) == []
    assert "s#1: g has no topic whose mode could be set" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('kind = "switch_request_mode"; group = "g"', "mode"),
        ('kind = "switch_request_mode"; group = "g"; mode = "pop"', "did you mean POP?"),
        ('kind = "switch_request_mode"; group = "g"; mode = "PULL"; share_queue_num = 1',
         "share_queue_num is valid with mode = 'POP' only"),
        ('kind = "switch_request_mode"; group = "g"; mode = "POP"; share_queue_num = -2',
         "expected a whole number from -1"),
        ('kind = "switch_request_mode"; group = "g"; mode = "POP"; share = 2',
         "did you mean share_queue_num?"),
        ('kind = "switch_request_mode"; group = "g"; mode = "POP"; rebalance_mode = "PROXY"',
         "expected one of CLIENT, BROKER"),
        ('kind = "switch_request_modes"; group = "g"; mode = "POP"',
         "did you mean switch_request_mode?"),
    ],
)  # fmt: skip
def test_mistakes_are_named(text: str, said: str) -> None:
    (mistake,) = mistakes_of(text)
    assert said in mistake


def test_an_unknown_topic_pattern_is_reported() -> None:
    assert scenario(POPS).edits[0].globs()["topic"] == ("topics", ("*",))
    _, said = edited(dump(), POPS + '; topic = "X*"')
    assert any('topic = "X*" matches none of 1 topics' in text for text in said)
