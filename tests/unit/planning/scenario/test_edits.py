"""Each kind of edit on a small history: the rows it makes and what the replay makes of them."""

from typing import Any

import pytest

from rebalance_core.planning.scenario.file import parse_scenario
from tests.unit.planning.scenario.groups import (
    END_MS,
    dump,
    edited,
    event,
    gone,
    join,
    numbered,
    process,
    replayed,
    topic,
    types,
)

MINUTE_MS = 60_000


def last(ledger: Any) -> dict[str, Any]:
    return ledger["epochs"][-1]


def members(ledger: Any) -> set[str]:
    return {row["client_id"] for row in ledger["memberships"] if row["to_epoch"] is None}


def test_add_consumers_like_those_that_are_there() -> None:
    rows, said = edited(dump(), 'kind = "add_consumers"; group = "g"; count = 3; every = "1m"')
    ledger = replayed(rows)
    assert said == ()
    assert [row["event_ms"] for row in rows[-3:]] == [END_MS + 1, END_MS + 60_001, END_MS + 120_001]
    assert (last(ledger)["members"], last(ledger)["distinct_members"]) == (7, 7)
    new = members(ledger) - {process(n)["client_id"] for n in range(1, 5)}
    assert all(client_id.startswith("10.0.0.") and "#" in client_id for client_id in new)
    assert {row["subscriptions"][0] for row in rows if row["subscriptions"]} == {"T"}


def test_a_share_is_rounded_up() -> None:
    rows, _ = edited(dump(5), 'kind = "add_consumers"; group = "g"; share = 0.5')
    assert last(replayed(rows))["members"] == 8


def test_an_empty_group_is_modelled_on_its_last_member() -> None:
    rows, said = edited(
        numbered([topic(0, 4), join(5, 1), gone(9, 1)]),
        'kind = "add_consumers"; at = "+1s"; group = "g"; count = 2',
    )
    assert said == ()
    assert last(replayed(rows))["members"] == 2


@pytest.mark.parametrize(
    ("how", "event_type", "detail"),
    [("leave", "CONSUMER_LEAVE", None), ("crash", "CONSUMER_LOST", "CLOSED"),
     ("expired", "CONSUMER_LOST", "EXPIRED")],
)  # fmt: skip
def test_remove_consumers(how: str, event_type: str, detail: str | None) -> None:
    rows, _ = edited(dump(), f'kind = "remove_consumers"; group = "g"; count = 2; how = "{how}"')
    assert [(r["event_type"], r["detail"]) for r in rows[-2:]] == [(event_type, detail)] * 2
    assert last(replayed(rows))["members"] == 2


def test_more_than_there_are_is_reported() -> None:
    rows, said = edited(dump(), 'kind = "remove_consumers"; group = "g"; count = 9')
    assert said == ("s#1: g has 4 members at that time, not 9",)
    assert last(replayed(rows))["status"] == "EMPTY"


def test_rolling_restart_changes_every_id_once() -> None:
    rows, _ = edited(
        dump(4), 'kind = "rolling_restart"; group = "g"; percent = 50; every = "5m"; down = "20s"'
    )
    ledger = replayed(rows)
    old = {process(n)["client_id"] for n in range(1, 5)}
    assert len(members(ledger)) == 4
    assert not members(ledger) & old
    assert {i.partition("@")[0] for i in members(ledger)} == {i.partition("@")[0] for i in old}
    assert [row["event_ms"] - END_MS - 1 for row in rows[-8:]] == [
        0,
        0,
        20_000,
        20_000,
        300_000,
        300_000,
        320_000,
        320_000,
    ]


@pytest.mark.parametrize(
    ("order", "expected"), [("first_first", [1, 2, 3, 4]), ("last_first", [4, 3, 2, 1])]
)
def test_rolling_restart_in_the_order_of_client_ids(order: str, expected: list[int]) -> None:
    text = f'kind = "rolling_restart"; group = "g"; percent = 25; order = "{order}"'
    rows, _ = edited(dump(4), text)
    number_of = {process(n)["client_id"]: n for n in range(1, 5)}
    gone = [row["client_id"] for row in rows if row["event_type"] == "CONSUMER_LEAVE"]
    assert [number_of[client_id] for client_id in gone] == expected


def test_an_instance_name_keeps_its_id_on_another_channel() -> None:
    named = {"client_id": "10.0.0.1@web", "channel_id": None}
    rows, _ = edited(
        numbered([topic(0, 4), join(5, 1) | named]), 'kind = "rolling_restart"; group = "g"'
    )
    assert [row["client_id"] for row in rows[1:]] == ["10.0.0.1@web"] * 3
    assert rows[-1]["channel_id"] not in (None, rows[1]["channel_id"])
    replayed(rows)


def test_lose_broker_and_back() -> None:
    before = dump()
    rows, _ = edited(
        before, 'kind = "lose_broker"; broker = "a"; how = "stopped"; back_after = "5m"'
    )
    assert types(rows, before) == ["BROKER_DOWN", "BROKER_UP"]
    assert (rows[-2]["detail"], rows[-1]["version"]) == ("STOPPED", "5.3.3")
    queues = [row["queues"] - 2 + (i == 1) for i, row in enumerate(replayed(rows)["epochs"])]
    assert queues == [16, 8, 16]  # without the retry topic's queue on each broker that is up


@pytest.mark.parametrize("slaves", ["refused", "slave_read", "acting"])
def test_lose_master_and_back(slaves: str) -> None:
    before = dump()
    rows, warnings = edited(
        before, f'kind = "lose_master"; broker = "a"; slaves = "{slaves}"; back_after = "5m"'
    )
    assert types(rows, before) == ["MASTER_DOWN", "MASTER_UP"]
    assert (rows[-2]["detail"], rows[-2]["broker_name"]) == (slaves.upper(), "a")
    assert rows[-1]["event_ms"] - rows[-2]["event_ms"] == 5 * MINUTE_MS
    assert warnings == ()
    assert len(replayed(rows)["epochs"]) == 1  # nobody's queues move


def test_a_recorded_return_of_a_master_that_an_edit_holds_away_is_dropped() -> None:
    away = event(MINUTE_MS, "MASTER_DOWN", broker_name="a", detail="ACTING")
    back = event(3 * MINUTE_MS, "MASTER_UP", broker_name="a")
    before = numbered([topic(0, 4), join(5, 1), away, back])
    lose = 'kind = "lose_master"; at = "-1m"; broker = "a"; back_after = "5m"'
    rows, warnings = edited(before, lose)
    assert [r["event_type"] for r in rows[2:]] == ["MASTER_DOWN", "MASTER_UP"]
    assert rows[2]["detail"] == "ACTING"
    assert rows[3]["event_ms"] == 7 * MINUTE_MS
    assert warnings == ("s#1: broker a already has no master",)


def test_a_master_that_the_log_has_away_stays_away() -> None:
    before = numbered([topic(0, 4), join(5, 1), event(MINUTE_MS, "MASTER_DOWN", broker_name="a")])
    rows, _ = edited(before, 'kind = "lose_master"; at = "-30s"; broker = "a"; back_after = "1m"')
    assert [r["event_type"] for r in rows[2:]] == ["MASTER_DOWN"]
    down = 'kind = "lose_broker"; broker = "a"', 'kind = "lose_master"; broker = "a"'
    _, warnings = edited(dump(), *down)
    assert warnings == ("s#2: broker a is already down",)


@pytest.mark.parametrize(
    ("how", "queues"),
    [("queues = 16", 32), ("factor = 2", 32), ("read = 4", 8), ("factor = 0.5", 8)],
)
def test_scale_queues(how: str, queues: int) -> None:
    rows, _ = edited(dump(), f'kind = "scale_queues"; topic = "T"; {how}')
    assert last(replayed(rows))["queues"] - 2 == queues
    assert {row["write_queue_nums"] for row in rows[-2:]} == {8 if "read" in how else queues // 2}


def test_later_changes_of_a_scaled_topic_are_scaled_too() -> None:
    before = numbered([topic(0, 4), join(5, 1), topic(2 * MINUTE_MS, 6)])
    rows, _ = edited(before, 'kind = "scale_queues"; at = "-1m"; topic = "T"; factor = 2')
    assert [r["read_queue_nums"] for r in rows if r["event_type"] == "TOPIC_CONFIG"] == [4, 8, 12]
    assert rows[-1]["sequence"] == 2


def test_new_topic_and_who_subscribes_it() -> None:
    rows, _ = edited(
        dump(2),
        'kind = "new_topic"; name = "N"; queues = 3; subscribed_by = "g"; subscribe_after = "1m"; '
        'every = "1m"',
        'kind = "add_consumers"; at = "+1h"; group = "g"; count = 1',
    )
    ledger = replayed(rows)
    assert [row["queues"] - 2 for row in ledger["epochs"]] == [16, 22, 22, 22]
    assert [row["orphaned"] for row in ledger["epochs"]] == [0, 3, 0, 0]
    assert rows[-1]["subscriptions"] == ["N", "T"]


def test_switch_strategy_at_once_keeps_the_ids() -> None:
    before = dump()
    rows, _ = edited(before, 'kind = "switch_strategy"; group = "g"; strategy = "AVG_BY_CIRCLE"')
    ledger = replayed(rows)
    assert types(rows, before) == ["CONSUMER_JOIN"] * 4
    assert last(ledger)["members"] == 4
    assert {r["strategy"] for r in ledger["memberships"] if r["to_epoch"] is None} == {
        "AVG_BY_CIRCLE"
    }


def test_switch_strategy_rolling_mixes_for_a_while() -> None:
    rows, _ = edited(
        dump(),
        'kind = "switch_strategy"; group = "g"; strategy = "AVG_BY_CIRCLE"; how = "rolling"; '
        'percent = 50; every = "10m"',
    )
    ledger = replayed(rows)
    mixed = [
        {
            r["strategy"]
            for r in ledger["memberships"]
            if r["from_epoch"] <= e and (r["to_epoch"] is None or e < r["to_epoch"])
        }
        for e in range(len(ledger["epochs"]))
    ]
    assert {"AVG", "AVG_BY_CIRCLE"} in mixed
    assert mixed[-1] == {"AVG_BY_CIRCLE"}


def test_who_joins_after_a_switch_has_the_new_strategy() -> None:
    before = numbered([topic(0, 4), join(5, 1), join(5 * MINUTE_MS, 2, strategy="AVG")])
    edit = 'kind = "switch_strategy"; at = "-1m"; group = "g"; strategy = "AVG_BY_CIRCLE"'
    rows, _ = edited(before, edit)
    assert (rows[-1]["sequence"], rows[-1]["strategy"]) == (2, "AVG_BY_CIRCLE")


def test_lose_room_takes_brokers_and_members() -> None:
    rows, said = edited(
        dump(),
        'kind = "lose_room"; room = "r"; broker_prefixes = "a"; '
        'client_prefixes = ["10.0.0.1@", "10.0.0.2@"]; back_after = "10m"',
    )
    ledger = replayed(rows)
    assert said == ()
    assert [row["members"] for row in ledger["epochs"]] == [4, 2, 2, 4]
    assert {row["detail"] for row in rows if row["event_type"] == "CONSUMER_LOST"} == {"EXPIRED"}


def test_a_room_by_the_separator() -> None:
    rows, said = edited(dump(), 'kind = "lose_room"; room = "10.0.0.1"; separator = "@"')
    assert said == ("s#1: no broker of c is in the room 10.0.0.1",)
    assert last(replayed(rows))["members"] == 3


@pytest.mark.parametrize(
    ("what", "topics"), [('extra = "U"', [["T"], ["T", "U"]]), ('lacking = "T"', [["T"], []])]
)
def test_mixed_subscriptions(what: str, topics: list[list[str]]) -> None:
    edit = f'kind = "mixed_subscriptions"; group = "g"; percent = 50; {what}'
    rows, _ = edited(dump(4), edit)
    now = [r["subscriptions"] for r in replayed(rows)["memberships"] if r["to_epoch"] is None]
    assert sorted(now) == sorted(topics * 2)


def test_an_edit_before_the_first_event_is_reported() -> None:
    rows, said = edited(dump(), 'kind = "rolling_restart"; at = "-2h"; group = "g"')
    assert rows == edited(dump())[0]
    assert said == ("s#1: g has no member at that time",)


def test_patterns_that_match_nothing_are_reported() -> None:
    _, said = edited(
        dump(),
        'kind = "add_consumers"; group = "gg"; count = 1',
        'kind = "lose_broker"; broker = "zz*"',
        'kind = "lose_broker"; broker = "*"; cluster = "d"',
    )
    assert said == (
        's.toml:3: group = "gg" matches none of 1 groups; did you mean g?',
        's.toml:7: broker = "zz*" matches none of 2 brokers',
        's.toml:10: cluster = "d" matches no cluster',
    )


def test_what_is_unknown_of_a_member_stays_unknown_after_an_edit() -> None:
    unstated = join(END_MS, 5, subscriptions=None) | {"detail": "OBSERVED"}
    rows = numbered([*dump(), unstated])
    mixed = 'kind = "mixed_subscriptions"; group = "g"; percent = 100; lacking = "T"'
    after, _ = edited(rows, mixed)
    joins = [row for row in after if row["event_type"] == "CONSUMER_JOIN"]
    lists = [row["subscriptions"] for row in joins if row.get("detail") != "OBSERVED"]
    assert (len(lists), lists.count(None), lists.count([])) == (5, 1, 4)


def test_consumers_of_another_language_join() -> None:
    """Their ids are as their clients make them, and they divide by a ring of their own."""
    ring = [row | {"strategy": "CONSISTENT_HASH"} for row in dump() if row.get("client_id")]
    rows = [row for row in dump() if not row.get("client_id")] + ring
    rows, said = edited(rows, 'kind = "add_consumers"; group = "g"; count = 2; language = "GO"')
    assert said == ()
    joined = [row for row in rows if row["event_type"] == "CONSUMER_JOIN"][-2:]
    assert [(row["language"], row["version"]) for row in joined] == [("GO", None)] * 2
    assert all("@" in row["client_id"] and "#" not in row["client_id"] for row in joined)
    end = [row for row in replayed(rows)["ownership"] if row["to_epoch"] is None]
    queues = [(row["broker_name"], row["queue_id"]) for row in end if row["topic"] == "T"]
    assert any(row["client_id"] is None for row in end)
    assert len(queues) > len(set(queues))


def test_a_language_that_there_is_not() -> None:
    mistakes: list[str] = []
    edit = '[[edit]]\nkind = "add_consumers"\ngroup = "g"\ncount = 2\nlanguage = "JAWA"'
    parse_scenario(f'name = "s"\ndescription = "d"\n{edit}', "s.toml", mistakes)
    (only,) = mistakes
    assert "'JAWA' is not a language" in only
    assert only.endswith("did you mean JAVA?")
