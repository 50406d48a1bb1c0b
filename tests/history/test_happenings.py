"""What happened in a night, and what differs from the night before, by made rows."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rebalance_core.audit.group_snapshot import AuditRun, BrokerOutage, GroupUpdate
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.history.happenings import BURST_MS, GROUPS_IN_WORDS, group_states, tonight_of
from rebalance_core.history.night import ReadColumns
from rebalance_core.model.times import HOUR_MS, MINUTE_MS
from rebalance_core.replay.masters import MasterOutage
from rebalance_core.report.tonight import GroupState, Tonight, night_difference

NIGHT_MS, END_MS = 100 * HOUR_MS, 124 * HOUR_MS
JOIN, LEAVE, LOST = "CONSUMER_JOIN", "CONSUMER_LEAVE", "CONSUMER_LOST"


def epoch(number: int, at_ms: int, causes: Sequence[str], members: int, **more: Any) -> Any:
    row = {
        "cluster": "c",
        "consumer_group": "g",
        "epoch": number,
        "from_ms": at_ms,
        "to_ms": None,
        "causes": list(causes),
        "members": members,
        "distinct_members": members,
        "queues": 8,
        "added": 0,
        "dropped": 0,
        "orphaned": 0,
        "shared": 0,
        "status": "SETTLED",
        "transient": False,
        "pop_queues": 0,
        "masterless_queues": 0,
    }
    return row | more


def chain(*epochs: Any) -> list[Any]:
    """Epochs of one group, each of which ends where the next begins."""
    ends = [row["from_ms"] for row in epochs[1:]] + [None]
    return [row | {"to_ms": end} for row, end in zip(epochs, ends, strict=True)]


def member(name: str, begin: int, end: int | None = None, **more: Any) -> Any:
    row = {
        "cluster": "c",
        "consumer_group": "g",
        "client_id": name,
        "channel_id": name,
        "subscriptions": ["t"],
        "strategy": "AVG",
        "version": "4.9.8",
        "language": "JAVA",
        "message_model": "CLUSTERING",
        "suspended": False,
        "rebalance_mode": "CLIENT",
        "from_epoch": begin,
        "to_epoch": end,
        "from_ms": 0,
        "to_ms": None,
    }
    return row | more


def reader(**rows: list[Any]) -> ReadColumns:
    def read(table: str, columns: Sequence[str]) -> pa.Table:
        batch = batch_of_rows(AUDITED_TABLES[table], rows.get(table, []))
        return pa.Table.from_batches([batch]).select(list(columns))

    return read


def metric(number: int, topic: str, queues: int) -> Any:
    row: Any = dict.fromkeys(AUDITED_TABLES["group_metrics"].column_names, 0)
    row |= {"cluster": "c", "consumer_group": "g"}
    return row | {"epoch": number, "topic": topic, "queues": queues}


def tonight(
    epochs: list[Any],
    members: list[Any],
    metrics: Sequence[Any] = (),
    names: Sequence[str] = ("g", "TOOLS_CONSUMER"),
    **run: Any,
) -> Tonight:
    runs = {"c": AuditRun(0, END_MS, night_ms=NIGHT_MS, **run)}
    verdicts = [verdict(name) for name in names]
    rows = {"epochs": epochs, "memberships": members, "group_metrics": list(metrics)}
    return tonight_of(runs, reader(**rows, group_verdicts=verdicts))


def texts(epochs: list[Any], members: list[Any]) -> list[str]:
    return [one.text for one in tonight(epochs, members).happenings]


AT = NIGHT_MS + HOUR_MS


def test_only_what_is_in_the_night() -> None:
    epochs = chain(
        epoch(0, NIGHT_MS - HOUR_MS, [JOIN], 1),
        epoch(1, NIGHT_MS, [JOIN], 2),  # the end of the night before is its own
        epoch(2, NIGHT_MS + 1, [JOIN], 3),
    )
    members = [member("a", 0), member("b", 1), member("c", 2)]
    found = tonight(epochs, members)
    assert [(one.at_ms, one.text) for one in found.happenings] == [
        (NIGHT_MS + 1, "Scale-out: 1 joined, 2 → 3 members")
    ]
    assert (found.from_ms, found.to_ms, found.groups_changed) == (NIGHT_MS, END_MS, 1)
    assert found.happenings[0].consumer_group == "g"


def test_members_that_come_leave_and_are_killed() -> None:
    members = [member("a", 0), member("b", 0, 1), member("c", 2)]
    for cause, words in (
        (LEAVE, "Scale-in: 1 left, 2 → 1 member"),
        (LOST, "Members lost: 1 lost (killed, or cut off from the brokers), 2 → 1 member"),
    ):
        epochs = chain(
            epoch(0, 0, [JOIN], 2),
            epoch(1, AT, [cause], 1),
            epoch(2, AT + BURST_MS + 1, [JOIN], 2),
        )
        assert texts(epochs, members) == [words, "Scale-out: 1 joined, 1 → 2 members"]
    epochs = chain(
        epoch(0, 0, [JOIN], 1), epoch(1, AT, [LEAVE], 0), epoch(2, AT + HOUR_MS, [JOIN], 1)
    )
    assert texts(epochs, [member("a", 0, 1), member("b", 2)]) == [
        "No member is left: 1 left, 1 → 0 members",
        "Came online: 1 joined, 0 → 1 member",
    ]


def test_a_redeploy_with_another_version_and_strategy() -> None:
    step = MINUTE_MS
    epochs = chain(
        epoch(0, 0, [JOIN], 2),
        epoch(1, AT, [LEAVE], 1),
        epoch(2, AT + step, [JOIN], 2),
        epoch(3, AT + 2 * step, [LEAVE], 1),
        epoch(4, AT + 3 * step, [JOIN], 2),
    )
    new: Any = {"version": "5.3.3", "strategy": "CONSISTENT_HASH"}
    members = [member("a", 0, 1), member("b", 0, 3), member("A", 2, **new), member("B", 4, **new)]
    assert texts(epochs, members) == [
        "Redeploy: 2 joined, 2 left, strategy AVG → CONSISTENT_HASH, version 4.9.8 → 5.3.3"
    ]


def test_settings_and_topics() -> None:
    epochs = chain(
        epoch(0, 0, [JOIN], 2),
        epoch(1, AT, ["SUBSCRIBE"], 2),
        epoch(2, AT + HOUR_MS, ["TOPIC_CONFIG"], 2),
        epoch(3, AT + HOUR_MS + 900, ["TOPIC_CONFIG"], 2),
        epoch(4, AT + HOUR_MS + 1_900, [JOIN], 3),
        epoch(5, AT + 2 * HOUR_MS, ["TOPIC_CONFIG"], 3),
        epoch(6, AT + 3 * HOUR_MS, ["BROKER_DOWN"], 3),
        epoch(7, AT + 4 * HOUR_MS, ["TOPIC_DELETED"], 3),
    )
    numbers = [(8, 4), (8, 4), (500, 4), (1_016, 4), (1_016, 4), (1_016, 4), (8, 2), (0, 4)]
    metrics = [
        metric(number, topic, queues)
        for number, pair in enumerate(numbers)
        for topic, queues in zip("tu", pair, strict=True)
    ]
    goes_on: Any = {"subscriptions": ["t", "u"]}
    members = [member("a", 0), member("b", 0, 1), member("b", 1, **goes_on), member("c", 4)]
    found = tonight(epochs, members, metrics).happenings
    assert [(one.at_ms - AT, one.text) for one in found] == [
        (0, "Settings changed: subscriptions"),  # b goes on: it neither left nor joined
        (HOUR_MS, "Scale-out: 1 joined, 2 → 3 members"),
        (HOUR_MS, "Topics scaled out: queues of t 8 → 1,016"),
        (4 * HOUR_MS, "Topics changed: queues of t 8 → 0, u 2 → 4"),
    ]


def test_settings_at_brokers() -> None:
    """By name they are the group's: a command at several brokers, and one that changed nothing."""
    off, on = "consumeEnable: true → false", "consumeEnable: false → true"
    updates = (
        GroupUpdate(NIGHT_MS, "g", "a", off),  # the night before
        GroupUpdate(AT, "g", "a", on),
        GroupUpdate(AT + 900, "g", "b", on),
        GroupUpdate(AT + HOUR_MS, "g", "a", on),
        GroupUpdate(AT, "TOOLS_CONSUMER", "a", on),
        GroupUpdate(AT, "of another audit", "a", on),
    )
    found = tonight([], [], updates=updates)
    assert [(one.at_ms - AT, one.consumer_group, one.text) for one in found.happenings] == [
        (0, "g", "Settings changed at a, b: consumeEnable: false → true"),
        (HOUR_MS, "g", "Settings changed at a: consumeEnable: false → true"),
    ]
    assert (found.groups_changed, found.groups_shown) == (1, 1)


def test_settings_of_many_groups_are_bounded_as_their_members_are() -> None:
    apart_ms = 2 * BURST_MS
    often = [GroupUpdate(AT + n * apart_ms, "g", "a", f"x: {n} → 0") for n in range(30)]
    once = [GroupUpdate(AT, f"g{n:03}", "a", "x: 1 → 0") for n in range(300)]
    names = ["g", *(update.consumer_group for update in once)]
    epochs = chain(epoch(0, 0, [JOIN], 1), epoch(1, AT, [LOST], 0))
    found = tonight(epochs, [member("a", 0, 1)], updates=(*often, *once), names=names)
    of_g = [one.text for one in found.happenings if one.consumer_group == "g"]
    settings = [text for text in of_g if text.startswith("Settings changed at a")]
    assert len(of_g) == len(settings) + 1  # its member was lost
    assert settings == [f"Settings changed at a: x: {n} → 0" for n in range(10, 30)]
    assert (found.groups_changed, found.groups_shown) == (301, GROUPS_IN_WORDS)
    assert len({one.consumer_group for one in found.happenings}) == GROUPS_IN_WORDS


def test_a_group_is_first_seen_while_its_members_join() -> None:
    epochs = chain(
        epoch(0, AT, [JOIN], 1), epoch(1, AT + 500, [JOIN], 2), epoch(2, AT + 900, [LEAVE], 1)
    )
    assert texts(epochs, [member("a", 0), member("b", 1, 2)]) == [
        "First seen: 2 members",
        "Scale-in: 1 left, 2 → 1 member",
    ]


def test_brokers() -> None:
    found = tonight(
        [],
        [],
        outages={
            "a": (
                BrokerOutage(NIGHT_MS - 9, NIGHT_MS, "x"),  # over before the night
                BrokerOutage(AT, AT + 5 * MINUTE_MS, "x"),
            ),
            "b": (BrokerOutage(0, None, "x"),),
            "c": (BrokerOutage(AT, None, "x"),),
            "d": (BrokerOutage(None, None, "x"),),
        },
        masters={
            "e": (MasterOutage(AT, AT + MINUTE_MS, None), MasterOutage(AT + HOUR_MS, None, None))
        },
    )
    assert [(one.at_ms, one.consumer_group, one.text) for one in found.happenings] == [
        (NIGHT_MS, None, "b is down, since 1970-01-01 00:00:00Z"),
        (NIGHT_MS, None, "d is down, since an unknown time"),
        (AT, None, "a was down for 5 min, until 1970-01-05 05:05:00Z"),
        (AT, None, "c went down and has not come back"),
        (AT, None, "e had no master for 60 s while a slave was alive"),
        (AT + HOUR_MS, None, "e lost its master while a slave was alive"),
    ]


def test_rocketmqs_own_groups_are_left_out_and_ten_thousand_are_bounded() -> None:
    def group(number: int) -> str:
        return f"g{number:05}" if number else "CID_RMQ_SYS_TRANS"

    epochs, members = [], []
    for number in range(10_001):
        name: Any = {"consumer_group": group(number)}
        cause = LOST if number % 100 == 1 else JOIN
        epochs += chain(epoch(0, 0, [JOIN], 1, **name), epoch(1, AT, [cause], 2, **name))
        members += [member("a", 0, **name), member("b", 1, **name)]
    found = tonight(epochs, members)
    named = {one.consumer_group or "" for one in found.happenings}
    assert (found.groups_changed, found.groups_shown) == (10_000, GROUPS_IN_WORDS)
    assert len(named) == GROUPS_IN_WORDS
    assert {group(number) for number in range(1, 10_001, 100)} <= named
    assert "CID_RMQ_SYS_TRANS" not in named


def verdict(group: str, verdict: str = "EQUAL", members: int = 1, queues: int | None = 8) -> Any:
    return {
        "cluster": "c",
        "consumer_group": group,
        "verdict": verdict,
        "reason": "",
        "looks": 0,
        "differences": 0,
        "members": members,
        "dumped_ms": None,
        "unasked": [],
        "settled_by": None,
        "queues": queues,
        "behind": 0,
        "moved": 0,
        "changed_ms": None,
        "dumps": 0,
        "basis": "LEDGER",
        "progress": "MOVES",
        "progress_reason": None,
        "health": "OK",
    }


def test_how_groups_stand() -> None:
    members = [
        member("a", 0),
        member("b", 0, version="5.3.3"),
        member("gone", 0, 1, version="1.0", strategy="CONFIG"),
        member("d", 0, consumer_group="unknown"),
    ]
    verdicts = [verdict("g", members=2), verdict("unknown", "UNKNOWN"), verdict("TOOLS_CONSUMER")]
    assert group_states(reader(memberships=members, group_verdicts=verdicts)) == {
        ("c", "g"): GroupState(2, 8, ("AVG",), ("4.9.8", "5.3.3")),
        ("c", "unknown"): GroupState(None, None, ("AVG",), ("4.9.8",)),
    }


def finding(rule_id: str, group: str, **evidence: str) -> Any:
    row: Any = dict.fromkeys(AUDITED_TABLES["findings"].column_names)
    row |= {"cluster": "c", "consumer_group": group, "rule_id": rule_id, "evidence": evidence}
    return row | {"severity": "WARNING", "summary": "", "remedy": ""}


def test_what_is_assumed_is_no_strategy() -> None:
    groups = ("dumped", "guessed", "given", "shown")
    members = [member("a", 0, consumer_group=group) for group in groups]
    verdicts = [verdict(group) for group in groups]
    verdicts[0]["basis"] = "DUMPS"
    found = [
        finding("INGEST_STRATEGY_UNKNOWN", "guessed"),
        finding("INGEST_ASSUMED", "given", client_version="V5_3_3"),
        finding("INGEST_ASSUMED", "shown", consume_from_where="LAST"),
    ]
    read = reader(memberships=members, group_verdicts=verdicts, findings=found)
    shown = {name[1]: state.strategies for name, state in group_states(read).items()}
    assert shown == {"dumped": (), "guessed": (), "given": (), "shown": ("AVG",)}


def test_what_is_not_known_is_no_difference() -> None:
    base = GroupState(2, 8, ("AVG",), ("4.9.8",))
    before = {("c", name): base for name in ("same", "more", "other", "blind", "old", "empty")}
    now = {
        ("c", "same"): base,
        ("c", "more"): GroupState(1_002, 16, ("AVG",), ("4.9.8",)),
        ("c", "other"): GroupState(2, 8, ("AVG", "CONFIG"), ("5.3.3",)),
        ("c", "blind"): GroupState(None, None, ("AVG",), ("4.9.8",)),
        ("c", "empty"): GroupState(0, 8, (), ()),
        ("c", "new"): base,
    }
    found = night_difference(before, now)
    assert {one.consumer_group: dict(one.columns) for one in found.groups} == {
        "more": {"members": ("2", "1,002"), "queues": ("8", "16")},
        "other": {"strategy": ("AVG", "AVG, CONFIG"), "version": ("4.9.8", "5.3.3")},
        "empty": {"members": ("2", "0")},
    }
    assert (found.new, found.gone) == ((("c", "new"),), (("c", "old"),))
