"""what_if: against the strategies themselves, in the states RocketMQ makes of a group."""

import cProfile
import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from rebalance_core import MessageQueue, allocate_group, parse_strategy
from rebalance_core.model.errors import UsageError
from rebalance_core.planning import (
    Change,
    add_consumers,
    consumer_counts,
    lose_broker,
    planning_strategy,
    what_if,
)
from rebalance_core.planning.what_if.what_if import WhatIf
from rebalance_core.strategies import AllocationStrategy
from tests.tree import TREE

IDS = ["10.0.0.1@711#81", "10.0.0.2@712#92", "10.0.0.3@713#93"]
EIGHT = {"orders": {"broker-a": 4, "broker-b": 4}}
ALL = [MessageQueue("orders", f"broker-{b}", i) for b in "ab" for i in range(4)]
STRATEGIES = (
    "AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONSISTENT_HASH(virtual_nodes=100)",
    "MACHINE_ROOM_NEARBY-AVG(client_rooms=10.0.0.1:1|10.0:2, broker_rooms=broker-a:1|broker:2)",
)  # fmt: skip


@pytest.mark.parametrize("text", STRATEGIES)
def test_owners_are_those_of_allocate_group(text: str, seed: int) -> None:
    rng = Random(seed)
    for _ in range(25):
        ids = [f"10.0.{rng.randint(0, 1)}.{rng.randint(1, 99)}@1#{i}" for i in range(9)]
        ids = rng.sample(ids, rng.randint(2, 9)) + ids[: rng.randint(0, 1)]
        numbers = {t: {f"broker-{b}": rng.randint(1, 6) for b in "abc"} for t in ("T", "U")}
        change = Change(
            add_consumers=rng.randint(0, 3),
            remove_consumers=rng.randint(0, 1),
            lose_broker=("broker-b",),
            queues={"T": {"broker-a": 7}},
        )
        result = what_if(ids, numbers, text, change)
        left = {t: {b: n for b, n in of.items() if b != "broker-b"} for t, of in numbers.items()}
        left["T"]["broker-a"] = 7
        for side, brokers in ((result.before, numbers), (result.after, left)):
            expected: dict[MessageQueue, tuple[str, ...]] = {}
            for topic, of_topic in brokers.items():
                queues = [MessageQueue(topic, b, i) for b, n in of_topic.items() for i in range(n)]
                expected |= allocate_group(parse_strategy(text), queues, side.client_ids)
            assert dict(side.owners) == expected
            assert list(side.owners) == list(expected)
            assert side.peak == side.figures.group.max_queues
            assert len(side.idle) == side.figures.group.idle_members


@pytest.mark.parametrize("strategy", ["AVG", "CONSISTENT_HASH", "CONFIG(queues=T/a/0|T/a/1)"])
@pytest.mark.parametrize(
    "group",
    [
        {},
        {"message_model": "BROADCASTING"},
        {"languages": {"10.0.0.1@1#1": "CPP", "10.0.0.2@1#1": "GO"}},
        {"request_modes": {"T": "POP(share_queue_num=1)"}, "rebalance_mode": "BROKER"},
    ],
)
def test_moves_by_other_ids_are_counted_like_those_of_the_answer(
    strategy: str, group: dict[str, Any]
) -> None:
    ids = ["10.0.0.1@1#1", "10.0.0.2@1#1", "10.0.0.2@1#1", "10.0.0.4@1#1"]
    queues = {"T": {"a": 9, "b": 4}, "U": {"b": 5}}
    change = add_consumers(2) | Change(remove_consumers=("10.0.0.4@1#1",), queues={"U": {"b": 7}})
    if strategy != "AVG" and "request_modes" in group:
        strategy = "AVG_BY_CIRCLE"  # the others never ask a broker
    result = what_if(ids, queues, strategy, change, **group)
    joining = [one for one in result.after.client_ids if one not in ids]
    assert len(joining) == 2
    assert result.with_ids is not None
    assert result.with_ids(joining) == result.moves


def test_a_table_costs_not_much_more_than_the_answer() -> None:
    """Each of 20 other sets of ids was computed like an answer of its own, figures and all."""
    ids = [f"10.0.0.{n}@1#1" for n in range(60)]

    def calls(work: Callable[[], object]) -> int:
        profile = cProfile.Profile()
        profile.runcall(work)
        return sum(entry.callcount for entry in profile.getstats())

    made: list[WhatIf] = []
    asked = calls(lambda: made.append(what_if(ids, {"T": {"a": 1200}}, "AVG", add_consumers(1))))
    assert calls(lambda: str(made[0])) < 3 * asked
    assert calls(lambda: str(made[0])) < asked


def test_figures_of_a_join() -> None:
    result = what_if(IDS[:2], EIGHT, "AVG", add_consumers(1))
    assert (result.moves, result.minimum, result.amplification) == (3, 2, 1.5)
    assert (result.before.peak, result.after.peak, result.after.idle) == (4, 3, ())
    assert result.after.client_ids == (*IDS[:2], "10.0.0.3@20000#1000000000000")
    assert len(result.moved) == 3


def test_the_template_decides_where_newcomers_sort() -> None:
    first = what_if(IDS, EIGHT, "AVG", add_consumers(1, "10.0.0.0@{pid}#{nanos}"))
    last = what_if(IDS, EIGHT, "AVG", add_consumers(1, "web-{n}"))
    assert first.after.client_ids.index("10.0.0.0@20000#1000000000000") == 0
    assert last.after.client_ids[-1] == "web-1"
    assert (first.moves, last.moves) == (3, 5)


def test_queues_may_be_listed_and_strategies_be_objects() -> None:
    named = what_if(IDS, EIGHT, "AVG", {"add_consumers": 1})
    for strategy in (parse_strategy("AVG"), planning_strategy("AVG")):
        assert what_if(iter(IDS), iter(ALL), strategy, {"add_consumers": 1}) == named
    odd = what_if(IDS[:1], [ALL[5], ALL[2]], "AVG", {})  # any ids, not 0 to n - 1 only
    assert list(odd.after.owners) == [ALL[2], ALL[5]]


def test_processes_of_one_id_share_and_orphan() -> None:
    result = what_if([*IDS, IDS[0]], EIGHT, "AVG", {})
    assert result.before.shared == tuple(ALL[:2])
    assert result.before.orphaned == tuple(ALL[2:4])
    one_left = what_if([*IDS, IDS[0]], EIGHT, "AVG", {"remove_consumers": IDS[0]}).after
    assert (one_left.client_ids, one_left.orphaned, one_left.shared) == (tuple(IDS), (), ())


def test_shares_of_members_that_do_not_read_a_topic_have_no_owner() -> None:
    members = {"x": ["T"], "y": ["T", "U"]}
    result = what_if(members, {"T": {"a": 2}, "U": {"a": 2}}, "AVG", {})
    assert result.before.orphaned == (MessageQueue("U", "a", 0),)
    assert result.minimum is None
    assert "subscribe differently" in str(result.movement.caveat)
    # RocketMQ hands every strategy the whole group, so it would be so under any
    sticky = what_if(members, {"T": {"a": 2}, "U": {"a": 2}}, "STICKY_BALANCED", {})
    assert sticky.before.orphaned == result.before.orphaned


def test_a_topic_that_loses_its_last_broker_is_frozen() -> None:
    change = lose_broker("broker-a") | add_consumers(1)
    result = what_if(IDS[:2], {"orders": {"broker-a": 4}}, "AVG", change)
    assert result.after.frozen_topics == {"orders"}
    assert result.after.owners == result.before.owners  # kept, though no longer readable
    assert result.after.idle == (result.after.client_ids[-1],)
    assert "frozen" in str(result)


def test_a_strategy_that_throws_freezes_the_group() -> None:
    result = what_if(["x", "y"], EIGHT, "AVG", {"strategy": "MACHINE_ROOM_NEARBY-AVG"})
    assert result.after.frozen_topics == {"orders"}
    assert result.moves == 0


def test_a_new_topic_is_read_by_everybody() -> None:
    members = {IDS[0]: ["orders"], IDS[1]: ["orders"]}
    result = what_if(members, EIGHT, "AVG", {"queues": {"pay": {"broker-c": 2}}})
    assert result.moves == 2
    assert result.after.figures.topics["pay"].max_queues == 1


def test_scaling_out_adds_to_the_brokers_named() -> None:
    after = what_if(IDS, EIGHT, "AVG", {"queues": {"orders": {"broker-a": 8}}}).after
    assert len(after.owners) == 12
    none = what_if(IDS, EIGHT, "AVG", {"queues": {"orders": {"broker-a": 0}}}).after
    assert list(none.owners) == ALL[4:]


def test_broadcasting_gives_everything_to_everybody() -> None:
    result = what_if(IDS, EIGHT, "AVG", add_consumers(1), message_model="BROADCASTING")
    assert set(map(len, result.after.owners.values())) == {4}
    assert (result.minimum, result.amplification) == (None, None)
    assert "BROADCASTING" in str(result)


def test_config_owns_what_it_lists() -> None:
    text = "CONFIG(queues=orders/broker-a/0|orders/broker-c/0)"
    result = what_if(IDS[:1], EIGHT, text, {})
    assert result.after.loads == {IDS[0]: 2}  # one of them does not exist
    assert len(result.after.orphaned) == 7
    assert "n/a" in str(result)


def test_sticky_balanced_moves_the_minimum_from_whatever_was_there(seed: int) -> None:
    rng = Random(seed)
    for _ in range(40):
        before = rng.choice(STRATEGIES[:4])
        change = Change(
            add_consumers=rng.randint(0, 3),
            remove_consumers=rng.randint(0, 2),
            strategy="STICKY_BALANCED",
            queues=rng.choice(({}, {"orders": {"broker-a": 9}})),
        )
        result = what_if(IDS, EIGHT, before, change)
        assert result.moves == result.minimum
        assert result.after.figures.group.max_queues - result.after.figures.group.min_queues <= 1
        assert "STICKY_BALANCED (not RocketMQ's)" in str(result)


def test_fewer_moves_than_the_minimum_are_explained() -> None:
    change = add_consumers(1, "web-{n}")
    result = what_if(IDS[1:], {"orders": {"broker-a": 80}}, "CONSISTENT_HASH", change)
    assert result.minimum is not None
    assert 0 < result.moves < result.minimum
    assert result.movement.caveat is None
    assert "less even" in str(result)


def test_the_last_member_leaves() -> None:
    result = what_if(IDS[:1], EIGHT, "AVG", {"remove_consumers": 1})
    assert result.after.orphaned == tuple(ALL)
    assert (result.after.peak, result.minimum, result.movement.caveat) == (0, None, "no member")
    assert what_if([], EIGHT, "AVG", add_consumers(2)).after.peak == 4


def test_results_are_frozen() -> None:
    result = what_if(IDS, EIGHT, "AVG", {})
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.before = result.after  # type: ignore[misc]
    with pytest.raises(TypeError):
        result.before.owners[ALL[0]] = ()  # type: ignore[index]


def test_large_groups_are_cut_in_the_table() -> None:
    ids = [f"10.0.{i // 250}.{i % 250}@1#1" for i in range(300)]
    text = str(what_if(ids, {"orders": {f"b{i}": 250 for i in range(20)}}, "AVG", add_consumers(5)))
    assert len(text.splitlines()) < 70
    assert "more queues that change hands" in text


def test_it_needs_nothing_installed() -> None:
    blocked = ("pyspark", "py4j", "pandas", "pyarrow", "numpy")
    code = "; ".join(
        [
            "import sys",
            *(f"sys.modules[{name!r}] = None" for name in blocked),
            "from rebalance_core.planning import what_if",
            "print(what_if(['x'], {'T': {'a': 2}}, 'AVG', {'add_consumers': 1}).moves)",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TREE, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "1\n", done.stderr


def test_what_is_not_asked_of_rocketmqs_strategies() -> None:
    assert isinstance(planning_strategy("AVG").as_allocation({}), AllocationStrategy)


def test_a_third_consumer_of_500_topics_is_reported_in_two_seconds() -> None:
    """apache/rocketmq#2794: 500 topics of 16 queues on 6 brokers, and one consumer more."""
    queues = {f"topic{i}": {f"broker-{b}": 16 for b in "abcdef"} for i in range(1, 501)}
    began = time.process_time()
    result = what_if(["10.0.0.1@1#1", "10.0.0.2@1#1"], queues, "AVG", {"add_consumers": 1})
    text = str(result)
    assert time.process_time() - began < 6  # 1.3 s alone on a core; 150 s when it was quadratic
    assert (result.moves, result.minimum, result.after.peak) == (24_000, 16_000, 16_000)
    assert "… 498 more like this" in text
    assert len(text.splitlines()) < 60


def test_topics_that_differ_are_all_reported() -> None:
    queues = {f"topic{i}": {"broker-a": 4 + i % 2} for i in range(6)} | {"other": {"broker-a": 9}}
    text = str(what_if(["a", "b"], queues, "AVG", {"add_consumers": 1}))
    rows = [line.split()[0] for line in text.splitlines() if line.startswith(("topic", "other"))]
    assert {"topic0", "topic1", "topic2", "topic3", "other"} <= set(rows)
    assert text.count("… 1 more like this") == 2


def test_consumers_of_16_queues() -> None:
    """alibaba/RocketMQ#470: how many queues for so many consumers."""
    told = {
        count.consumers: (count.peak, count.least, count.idle)
        for count in consumer_counts({"orders": 16}, [3, 4, 17])
    }
    assert told == {3: (6, 5, 0), 4: (4, 4, 0), 17: (1, 0, 1)}


def test_a_lost_broker_keeps_what_its_queues_hold() -> None:
    """apache/rocketmq-operator#239: the size of a broker goes from 2 to 1."""
    ids = [f"10.0.0.{k}@1#1" for k in range(1, 4)]
    queues = {"orders": {"broker-0": 8, "broker-1": 8}}
    result = what_if(ids, queues, "AVG", {"lose_broker": "broker-1"})
    text = str(result)
    assert result.moves == 5
    assert sum(line.endswith("(gone)") for line in text.splitlines()) == 8
    assert "messages left in the queues of broker-1 stay unread until it is back" in text
    assert "still hold" not in str(what_if(ids, queues, "AVG", {"add_consumers": 1}))


RING = "CONSISTENT_HASH(virtual_nodes=10)"
EIGHT_AT_A = [MessageQueue("orders", "broker-a", number) for number in range(8)]
TWO = ["10.0.0.1@1#1", "10.0.0.2@1#1"]


@pytest.mark.parametrize(
    ("strategy", "language", "left_out", "twice"),
    [("AVG", "GO", 0, 0), (RING, "GO", 1, 2), (RING, "RUST", 0, 0), (RING, "JAVA", 0, 0),
     ("AVG_BY_CIRCLE", "CPP", 2, 2)],
)  # fmt: skip
def test_a_consumer_of_another_language_joins(
    strategy: str, language: str, left_out: int, twice: int
) -> None:
    """May I add a Go consumer to this Java group?"""
    change = add_consumers(1, language=language)
    result = what_if(TWO, {"orders": {"broker-a": 8}}, strategy, change)
    assert (len(result.after.orphaned), len(result.after.shared)) == (left_out, twice)
    assert (len(result.before.orphaned), len(result.before.shared)) == (0, 0)
    text = str(result)
    answer = f"{language} and JAVA divide differently: {left_out} queues left out, {twice} read by"
    assert (answer in text) == (left_out > 0)
    both = " and ".join(sorted(("JAVA", language)))
    assert (f"{both} leave out no queue" in text) == (left_out == 0 and language != "JAVA")


def test_who_is_of_which_language_before() -> None:
    queues, languages = {"orders": {"broker-a": 8}}, {TWO[1]: "GO"}
    mixed = what_if(TWO, queues, RING, {}, languages=languages)
    own = {queue: set[str]() for queue in EIGHT_AT_A}
    for client_id, strategy in zip(TWO, (RING, f"GO_{RING}"), strict=True):
        for queue in parse_strategy(strategy).allocate(client_id, EIGHT_AT_A, TWO):
            own[queue].add(client_id)
    assert {queue: set(owners) for queue, owners in mixed.before.owners.items()} == own
    assert set(mixed.before.orphaned) == {queue for queue in own if not own[queue]}
    alike = what_if(TWO, queues, RING, {"strategy": "AVG"}, languages=languages)
    assert (bool(alike.before.orphaned), alike.after.orphaned) == (True, ())
    gone = what_if(TWO, queues, RING, {"remove_consumers": [TWO[0]]}, languages=languages)
    assert (gone.after.orphaned, gone.after.mixed) == ((), None)


def test_of_a_client_that_sorts_as_its_host_does_nothing_is_sure() -> None:
    result = what_if(TWO, {"orders": {"broker-a": 8}}, "AVG", add_consumers(1, language="DOTNET"))
    assert "the queues that a client of DOTNET takes are unknown" in str(result)


def test_a_language_that_is_none_is_reported_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        what_if(
            TWO,
            {"T": {"a": 1}},
            "AVG",
            {"add_consumers": 1, "language": "golang"},
            languages={"x": "JAWA"},
        )
    first, second, third = str(caught.value).splitlines()
    assert first.startswith("languages.x: 'JAWA' is not a language")
    assert first.endswith("did you mean JAVA?")
    assert second == "languages: 'x' is not a member"
    assert third.endswith("did you mean GO?")


def test_the_page_on_planning_shows_the_answer() -> None:
    text = str(what_if(TWO, {"orders": {"broker-a": 8}}, RING, add_consumers(1, language="GO")))
    page = (TREE / "docs" / "planning.md").read_text("utf-8")
    shown = page.partition("Part of the output:\n\n```\n")[2].partition("\n```")[0].splitlines()
    assert len(shown) == 5
    assert set(shown) <= set(text.splitlines())


def test_a_result_as_a_frame() -> None:
    result = what_if(["a@1", "b@1"], {"T": {"x": 3}}, "AVG", {"remove_consumers": ["b@1"]})
    frame = result.to_pandas()
    assert list(frame.columns) == ["topic", "broker_name", "queue_id", "before", "after", "moved"]
    assert [list(owners) for owners in frame["before"]] == [["a@1"], ["a@1"], ["b@1"]]
    assert [list(owners) for owners in frame["after"]] == [["a@1"]] * 3
    assert list(frame["moved"]) == [False, False, True]


@pytest.mark.parametrize(
    ("language", "strategy", "known"),
    [("NODE", "AVG", True), ("NODE", "AVG_BY_CIRCLE", False), ("DOTNET", "AVG", False)],
)
def test_a_client_that_never_ran_so_is_neither_idle_nor_are_its_queues_unowned(
    language: str, strategy: str, known: bool
) -> None:
    queues = {"T": {"a": 4, "b": 4}}
    found = what_if(TWO, queues, strategy, {}, languages={TWO[1]: language}).after
    assert (found.orphaned, found.idle) == ((), ())
    assert found.unknown == (frozenset() if known else {TWO[1]})
    assert found.loads[TWO[1]] == (4 if known else 0)
    assert (
        "not known" in str(what_if(TWO, queues, strategy, {}, languages={TWO[1]: language}))
    ) == (not known)


def test_go_and_cpp_in_one_group_divide_by_their_own() -> None:
    """Both follow the rules of 4.9, and C++ has no strategy but AVG."""
    languages = {TWO[0]: "CPP", TWO[1]: "GO"}
    found = what_if(TWO, {"T": {"a": 4}}, "AVG_BY_CIRCLE", {}, languages=languages).after
    owners = {queue.queue_id: clients for queue, clients in found.owners.items()}
    assert owners == {0: (TWO[0],), 1: (TWO[0], TWO[1]), 2: (), 3: (TWO[1],)}
