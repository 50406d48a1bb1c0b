"""Histories that random ones rarely hit: each once told a wrong kernel from a right one."""

from collections.abc import Sequence
from typing import Any

import pytest

from rebalance_core.model.events import Event
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset
from tests.unit.kernels.fleets import assert_equal, kernel_tables, replay_rows
from tests.unit.replay.histories import commit, event, history, join, leave, seen, topic


def group(
    *events: Event,
    offsets: Sequence[QueueOffset] = (),
    commits: Sequence[CommittedOffset] = (),
    **settings: Any,
) -> GroupHistory:
    return history(*events, offsets=offsets, commits=commits, **settings)


def lost(at_ms: int, client_id: str) -> Event:
    return event(at_ms, "CONSUMER_LOST", client_id)


CASES = {
    "a topic subscribed, scaled and given up in one instant": group(
        topic(0, 2, "U"),
        join(0, "x"),
        topic(9, 3),
        event(99_000, "SUBSCRIBE", "x", topic="U"),
        topic(99_000, 5, "U"),
        event(99_000, "UNSUBSCRIBE", "x", topic="U"),
    ),
    "the retry topic is born on a broker that is down": group(
        join(0, "x"),
        event(9, "BROKER_DOWN", broker_name="a"),
        topic(99_000, 2),
    ),
    "two come and one goes where everybody reads everything": group(
        topic(0, 2),
        join(0, "x"),
        leave(99_000, "x"),
        join(99_000, "y"),
        join(99_000, "z"),
        message_model="BROADCASTING",
    ),
    "the only look there is comes after the timestamp": group(
        topic(0, 1),
        join(99_000, "x"),
        offsets=[seen("a0", 50_000, 5, 9)],
        consume_from_where="CONSUME_FROM_TIMESTAMP",
        consume_timestamp_ms=40_000,
    ),
    "each reads everything of its own topics alone": group(
        topic(0, 2),
        topic(0, 2, "U"),
        join(0, "x", "T"),
        join(0, "y", "U"),
        join(9, "z", "T", "U"),
        leave(99_000, "z"),
        message_model="BROADCASTING",
    ),
    "queues come as the only member there ever was goes": group(
        topic(0, 2),
        join(0, "x"),
        topic(99_000, 4),
        leave(99_000, "x"),
    ),
    "a lost process that is back at once persists what it hands over": group(
        topic(0, 2),
        join(0, "x"),
        lost(99_000, "x"),
        join(99_000, "x"),
        join(99_000, "y"),
        commits=[commit("a1", 50_000, 3, "x"), commit("a1", 99_500, 7, "x")],
        offsets=[seen("a1", 100_000, 0, 9)],
    ),
    "a lost process hands nothing over, whatever it committed": group(
        topic(0, 2),
        join(0, "x"),
        join(9, "y"),
        lost(99_000, "x"),
        commits=[commit("a0", 50_000, 3, "x"), commit("a0", 99_500, 7, "x")],
        offsets=[seen("a0", 60_000, 0, 9), seen("a0", 103_000, 0, 12)],
    ),
    "a lost process that committed nothing": group(
        topic(0, 2),
        join(0, "x"),
        join(9, "y"),
        lost(99_000, "x"),
        commits=[commit("a0", 50_000, 3)],
        offsets=[seen("a0", 60_000, 0, 9), seen("a0", 99_000, 0, 11), seen("a0", 103_000, 0, 12)],
    ),
    "a queue is free for long before somebody takes it": group(
        topic(0, 1),
        join(0, "x"),
        event(99_000, "BROKER_DOWN", broker_name="a"),
        event(900_000, "BROKER_UP", broker_name="a"),
        join(900_000, "w"),
        commits=[commit("a0", 50_000, 3, "x"), commit("a0", 120_000, 5, "x")],
        offsets=[seen("a0", 200_000, 0, 9), seen("a0", 950_000, 0, 30)],
    ),
    **{
        f"the last two leave at once, {first} first": group(
            topic(0, 1),
            topic(0, 2, "U"),
            join(0, "x", "T"),
            join(0, "y", "U"),
            leave(99_000, first),
            topic(99_000, 3),
            leave(99_000, second),
            topic(99_000, 4),
            topic(99_000, 5, "U"),
            topic(200_000, 6),
            join(300_000, "z"),
        )
        for first, second in ("xy", "yx")
    },
    "what is read within the last instant only is not left behind": group(
        topic(0, 1),
        topic(0, 2, "U"),
        join(0, "x", "T"),
        leave(99_000, "x"),
        topic(99_000, 3),
        join(99_000, "y", "U"),
        topic(99_000, 4),
        topic(99_000, 3, "U"),
        leave(99_000, "y"),
        topic(99_000, 5),
        topic(99_000, 4, "U"),
        topic(200_000, 6, "U"),
        topic(300_000, 6),
    ),
    "a topic given up and read again in the last instant": group(
        topic(0, 1),
        join(0, "x"),
        event(99_000, "UNSUBSCRIBE", "x", topic="T"),
        topic(99_000, 2),
        event(99_000, "SUBSCRIBE", "x", topic="T"),
        leave(99_000, "x"),
        topic(200_000, 3),
    ),
    "somebody comes and goes in an instant of an empty group": group(
        topic(0, 1),
        topic(0, 2, "U"),
        join(0, "x"),
        leave(99_000, "x"),
        join(200_000, "y", "U"),
        topic(200_000, 3, "U"),
        topic(200_000, 3, "U", "b"),
        leave(200_000, "y"),
        topic(200_000, 2),
        topic(300_000, 3),
        topic(300_000, 4, "U"),
        join(400_000, "y", "U"),
        leave(400_000, "y"),
        topic(400_000, 4),
        join(400_000, "z"),
    ),
    "another group's retry topic is given up, by one and then by all": group(
        topic(0, 4, "%RETRY%other"),
        join(0, "x", "%RETRY%other"),
        join(0, "y", "%RETRY%other"),
        event(99_000, "UNSUBSCRIBE", "x", topic="%RETRY%other"),
        event(200_000, "UNSUBSCRIBE", "y", topic="%RETRY%other"),
    ),
    "offsets as high as a BIGINT": group(
        topic(0, 4),
        join(0, "x"),
        join(99_000, "y"),
        leave(200_000, "y"),
        join(300_000, "w"),
        commits=[
            commit("a0", 50_000, 2**62, "x"),
            commit("a1", 50_000, 2**63 - 1, "x"),
            commit("a3", 99_500, 2**63 - 1, "x"),
            commit("a2", 200_500, 2**62 + 1, "y"),
        ],
        offsets=[
            seen("a1", 90_000, 2**62, 2**63 - 1),
            seen("a2", 90_000, 0, 2**62),
            seen("a3", 900_000, 0, 2**63 - 1),
        ],
    ),
    **{
        f"a commit {ms - 152_000} ms after the last holder may still have had it": group(
            topic(0, 1),
            join(0, "x"),
            event(99_000, "BROKER_DOWN", broker_name="a"),
            event(900_000, "BROKER_UP", broker_name="a"),
            join(900_000, "w"),
            commits=[commit("a0", ms, 5, "x")],
            offsets=[seen("a0", 200_000, 0, 9)],
        )
        for ms in (151_999, 152_000, 152_001)
    },
}


@pytest.mark.parametrize("case", CASES)
def test_the_rows_are_those_of_the_replay(case: str) -> None:
    kernels, reasons = kernel_tables([CASES[case]])
    assert reasons == {("c", "g"): "REGULAR"}
    assert_equal(kernels, replay_rows([CASES[case]]))
