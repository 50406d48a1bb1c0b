"""Logs made of one future lie in the futures; logs of a slower cluster do not."""

from collections import Counter
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
import pytest

from rebalance_core.contracts.observed import LATENCIES
from rebalance_core.contracts.rows import LatenciesRow, QueueMovesRow
from rebalance_core.engine.propagation import is_unknown
from rebalance_core.model.events import OBSERVED
from rebalance_core.timing.fidelity import GroupFidelity, GroupLogs, fidelity_rows, group_fidelity
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds
from tests.unit.replay.histories import history, topic
from tests.unit.timing.futures import happens, joins

MEMBERS, RESTARTS, FUTURES, LOGGED = 6, 40, 150, 1_000
OPTIONS = ClockOptions(exact_times=True)


def compared(late_ms: int, *sizes: int) -> GroupFidelity:
    """A group whose members restart in turn, with the log of a future that is not played.

    Args:
        late_ms: what its log shows is so much later.
        sizes: of the slices of futures.
    """
    events = [topic(0, 4, "T", "a"), topic(0, 4, "T", "b")]
    events += [joins(1, f"m{number}-0", detail=OBSERVED) for number in range(MEMBERS)]
    for number in range(RESTARTS):
        turn, member = divmod(number, MEMBERS)
        at_ms = 600_000 + number * 290_000
        events.append(happens(at_ms, "CONSUMER_LEAVE", f"m{member}-{turn}"))
        events.append(joins(at_ms + 15_000, f"m{member}-{turn + 1}"))
    timeline = build_timeline(history(*events), OPTIONS)
    log = play_seeds(timeline, [LOGGED], OPTIONS)
    logs = GroupLogs()
    for lifetime, queue, at_us, delta in zip(
        log.lifetime.tolist(),
        log.queue.tolist(),
        log.at_us.tolist(),
        log.delta.tolist(),
        strict=True,
    ):
        its = timeline.queues[queue]
        logs.moves.append(
            {
                "cluster": timeline.cluster,
                "consumer_group": timeline.consumer_group,
                "topic": its.topic,
                "broker_name": its.broker_name,
                "queue_id": its.queue_id,
                "client_id": timeline.lifetimes[lifetime].client_id,
                "at_ms": at_us // 1_000 + late_ms,
                "action": "ADD" if delta > 0 else "DROP",
                "source": "",
            }
        )
    ends = np.cumsum(sizes)
    slices = [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    return group_fidelity(timeline, logs, OPTIONS, slices)


def test_a_future_lies_in_the_others() -> None:
    found = compared(0, FUTURES)
    assert (found.changes, found.unlogged) == (2 * RESTARTS, 0)
    assert 0 < found.partly_logged <= 10  # no log shows that a member was there and moved nothing
    places = Counter(sample.place() for sample in found.samples)
    count = len(found.samples)
    assert count > 400
    assert places["INSIDE"] + places["IN_RANGE"] >= 0.95 * count
    assert 0.8 * count <= places["INSIDE"] <= 0.97 * count
    rows = [row for row in fidelity_rows([found], ["c"], OPTIONS) if row["samples"]]
    assert {(row["kind"], row["measure"]) for row in rows} == {
        (kind, measure)
        for kind in ("CONSUMER_JOIN", "CONSUMER_LEAVE")
        for measure in ("LAST", "FIRST_ADD", "FIRST_DROP", "GAP")
    }
    assert {row["verdict"] for row in rows} == {"AGREES"}


def test_a_slower_cluster_does_not() -> None:
    found = compared(4_000, FUTURES)
    rows = {(row["kind"], row["measure"]): row for row in fidelity_rows([found], ["c"], OPTIONS)}
    last = rows["CONSUMER_JOIN", "LAST"]
    assert (last["verdict"], last["reason"]) == (
        "DIFFERS",
        f"of {RESTARTS}: {RESTARTS} longer than in any future",
    )
    start_up = rows["START_UP", "LATENCY"]
    assert (start_up["samples"], start_up["verdict"]) == (0, "UNKNOWN")


@pytest.mark.parametrize("sizes", [(10, 10), (7, 6, 7)])
def test_slices_make_no_difference(sizes: tuple[int, ...]) -> None:
    rows = [sample.row() for sample in compared(0, *sizes).samples]
    assert rows == [sample.row() for sample in compared(0, 20).samples]


def moved(client_id: str, at_ms: int, action: Literal["ADD", "DROP"]) -> QueueMovesRow:
    return {
        "cluster": "C",
        "consumer_group": "g",
        "topic": "T",
        "broker_name": "a",
        "queue_id": 0,
        "client_id": client_id,
        "at_ms": at_ms,
        "action": action,
        "source": "",
    }


def latency(kind: str, client_id: str, at_ms: int) -> LatenciesRow:
    row = dict.fromkeys(LATENCIES.column_names)
    row |= {"kind": kind, "client_id": client_id, "at_ms": at_ms, "duration_ms": 5.0}
    return cast("LatenciesRow", row)


def of_group(*events: Any, moves: Any = (), latencies: Any = ()) -> GroupFidelity:
    made = history(*events)
    timeline = build_timeline(made, OPTIONS)
    if is_unknown(made):
        timeline = replace(timeline, queues=())
    logs = GroupLogs(latencies=list(latencies), moves=list(moves))
    return group_fidelity(timeline, logs, OPTIONS, [np.arange(200)])


LEAVES = happens(900_000, "CONSUMER_LEAVE", "c2")


def test_a_group_whose_owners_are_unknown_has_latencies_alone() -> None:
    first = joins(1, "c1", detail=OBSERVED)
    events = [topic(0, 2, "T", "a"), first, joins(600_000, "c2", language="DOTNET"), LEAVES]
    made = of_group(*events, latencies=[latency("UNREGISTRATION", "c2", 900_000)])
    assert (made.changes, made.unplayed) == (0, 1)


def test_a_client_leaves_the_brokers_one_after_the_other_whenever_they_came() -> None:
    left = latency("UNREGISTRATION", "c2", 900_000)
    events = [topic(0, 2, "T", "a"), joins(1, "c1", detail=OBSERVED), joins(600_000, "c2")]
    made = of_group(*events, topic(700_000, 2, "T", "b"), LEAVES, latencies=[left])
    (sample,) = made.samples
    assert made.strangers == 0
    assert sample.quantiles_ms[2] is not None


def test_moves_of_a_client_that_is_no_member_are_not_compared() -> None:
    events = [topic(0, 2, "T", "a"), joins(1, "c1", detail=OBSERVED), joins(600_000, "c2"), LEAVES]
    made = of_group(*events, moves=[moved("stranger", 605_000, "DROP")])
    assert made.samples == []
