"""`python -m tests.bench.passes.timing`: many futures at once against the plain event loop.

Processor time of one process for a group of 50 members and one of 8, through joins, leaves, new
queues and restarts of a broker, each five minutes after the other, and every 10 s for a rolling
restart; and for orderly groups of 8 members, some of which die. Beside it the loop over the same
futures one by one; unit tests hold both equal.
"""

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rebalance_core.model import events
from rebalance_core.model.events import OBSERVED, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.reference.play import play_seeds_one_by_one
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds
from tests.bench.report import MORE, Figure, Report, Table, bench_main, say, tidy

ABOUT = """\
The bench measures the processor time for one future of a group through its changes. Joins, leaves,
changes of the queues, and losses and returns of a broker are a fifth each. In `restart`, every
member leaves and joins again, one every 10 s. Members of orderly groups join, leave and die a
minute apart, often before the locks of the last change have expired. These run in few futures, to
show what a change costs whatever the number of futures. The plain loop plays the same futures event
by event; unit tests check that both logs are equal."""
T0_MS = 1_700_000_000_123
GAP_MS, PACE_MS, ORDERLY_MS = 300_000, 10_000, 60_000
BROKERS = ("broker-a", "broker-b", "broker-c")
QUEUES = 16
LOOP_SEEDS = 3
FEW_SEEDS = 20  # as a plan plays
RATIO = 30.0
"""What issue 19 asks of 50 members."""


def event_at(at_ms: int, number: int, kind: str, **said: str | int) -> Event:
    """An event of the group."""
    return Event(at_ms, number, kind, **said)  # type: ignore[arg-type]


def opening(members: int, queues: int = QUEUES) -> list[Event]:
    """The topic on all brokers, and who is there."""
    found = [
        event_at(
            T0_MS,
            n,
            events.TOPIC_CONFIG,
            topic="T",
            broker_name=broker,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=6,
            detail=OBSERVED,
        )
        for n, broker in enumerate(BROKERS)
    ]
    return found + [
        event_at(
            T0_MS,
            len(found) + n,
            events.CONSUMER_JOIN,
            client_id=f"10.0.0.{n}@1",
            channel_id="0",
            detail=OBSERVED,
        )
        for n in range(members)
    ]


def mixed(members: int, changes: int) -> GroupTimeline:
    """Changes of all kinds, in turn."""
    found = opening(members)
    for n in range(changes):
        at_ms, guest = T0_MS + (n + 1) * GAP_MS, f"10.1.0.{n // 5}@1"
        made: dict[str, str | int]
        match n % 5:
            case 0:
                kind, made = events.CONSUMER_JOIN, {"client_id": guest, "channel_id": "0"}
            case 1:
                kind, made = events.CONSUMER_LEAVE, {"client_id": guest, "channel_id": "0"}
            case 2:
                queues = QUEUES + 1 + n // 5 % 3
                kind = events.TOPIC_CONFIG
                made = {
                    "topic": "T",
                    "broker_name": BROKERS[0],
                    "read_queue_nums": queues,
                    "write_queue_nums": queues,
                    "perm": 6,
                }
            case 3:
                kind, made = events.BROKER_DOWN, {"broker_name": BROKERS[1]}
            case _:
                kind, made = events.BROKER_UP, {"broker_name": BROKERS[1]}
        found.append(event_at(at_ms, len(found), kind, **made))
    return timeline(found)


def restart(members: int, changes: int) -> GroupTimeline:
    """A rolling restart, as far as so many changes go."""
    found = opening(members)
    for n in range(changes):
        kind = events.CONSUMER_JOIN if n % 2 else events.CONSUMER_LEAVE
        member = {"client_id": f"10.0.0.{n // 2 % members}@1"}
        channel = str((n + 1) // 2 // members + n % 2)
        at_ms = T0_MS + GAP_MS + n * PACE_MS
        found.append(event_at(at_ms, len(found), kind, **member, channel_id=channel))
    return timeline(found)


def orderly(queues: int, changes: int) -> GroupTimeline:
    """Members of an orderly group join, die and leave in turn."""
    found = opening(8, -(-queues // len(BROKERS)))
    kinds = events.CONSUMER_JOIN, events.CONSUMER_LOST, events.CONSUMER_JOIN, events.CONSUMER_LEAVE
    for n in range(changes):
        member = {"client_id": f"10.1.0.{n // 2}@1", "channel_id": "0"}
        found.append(event_at(T0_MS + GAP_MS + n * ORDERLY_MS, len(found), kinds[n % 4], **member))
    return timeline(found, ordered=True, client_version="5.1.4", broker_version="5.3.3")


def timeline(found: list[Event], **given: Any) -> GroupTimeline:
    """Of a group of push consumers."""
    settings = GroupSettings(subscriptions=("T",), **given)
    return build_timeline(GroupHistory("c", "g", settings, tuple(found)), ClockOptions())


def seconds(its: GroupTimeline, seeds: int, *, loop: bool = False) -> float:
    """Processor time of all futures."""
    begin = time.process_time()
    if loop:
        play_seeds_one_by_one(its, range(seeds), ClockOptions())
    else:
        play_seeds(its, np.arange(seeds), ClockOptions())
    return time.process_time() - begin


def timing(seeds: int = 500, changes: int = 20) -> Report:
    """Measure groups of two sizes, and twice as much of everything.

    Args:
        seeds: futures of each.
        changes: of each group.
    """
    seconds(mixed(3, 5), 10)  # what Python and numpy do once
    rows: list[tuple[str | float, ...]] = []
    orderly_rows: list[tuple[str | float, ...]] = []
    figures: list[Figure] = []
    shapes: tuple[tuple[str, Callable[[int, int], GroupTimeline], int], ...] = (
        ("8 members", mixed, 8), ("50 members", mixed, 50), ("50 members, restart", restart, 50),
    )  # fmt: skip
    for name, make, members in shapes:
        its = make(members, changes)
        ours = seconds(its, seeds) / seeds
        loop = seconds(its, LOOP_SEEDS, loop=True) / LOOP_SEEDS
        say(f"  {name}: {1000 * ours:.2f} ms a future, plain loop {1000 * loop:.0f} ms")
        more_seeds = seconds(its, 2 * seeds) / seeds
        more_changes = seconds(make(members, 2 * changes), seeds) / seeds
        rows.append((name, tidy(1000 * ours), tidy(1e6 * ours / changes), tidy(1000 * loop)))
        target = RATIO if members == 50 else None
        figures += [
            Figure(
                f"futures, {name}: plain loop / ours", tidy(loop / ours), better=MORE, target=target
            ),
            Figure(f"futures, {name}: twice the futures", tidy(more_seeds / ours), steady=False),
            Figure(f"futures, {name}: twice the changes", tidy(more_changes / ours), steady=False),
        ]
    for queues in (50, 500):
        its = orderly(queues, changes)
        ours = seconds(its, FEW_SEEDS)
        loop = seconds(its, 1, loop=True)
        name = f"orderly, {queues} queues"
        say(f"  {name}: {1000 * ours / changes:.0f} ms a change, plain loop {1000 * loop:.0f} ms")
        orderly_rows.append(
            (name, tidy(1000 * ours / changes), tidy(1000 * ours / FEW_SEEDS), tidy(1000 * loop))
        )
        figures += [
            Figure(
                f"futures, {name}: plain loop / ours", tidy(loop / ours * FEW_SEEDS), better=MORE
            )
        ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures.append(Figure("futures: peak memory of the process", tidy(peak), unit="MiB"))
    columns = (
        "group",
        "ms a future",
        "ms, 1,000 futures of a change",
        "plain loop, ms a future",
    )
    of_orderly = "group", f"ms a change, {FEW_SEEDS} futures", "ms a future", columns[-1]
    tables = Table(columns, tuple(rows)), Table(of_orderly, tuple(orderly_rows))
    return Report("Many futures", ABOUT, tuple(figures), tables)


if __name__ == "__main__":
    bench_main(timing, __doc__, seeds=500, changes=20)
