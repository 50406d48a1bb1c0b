"""Points of the grid: both descriptions of a point, and the kernels on it, against the strategy."""

import zlib
from dataclasses import replace

import numpy as np
import pytest

from rebalance_core import MessageQueue, allocate_group, make_strategy
from tests.bench.assignors.jars import locked_jars
from tests.bench.assignors.owners import kernels_on
from tests.bench.assignors.points import CHANGES, FULL, Point, State, star
from tests.bench.histories import names

SMALL = Point(members=20, per_member=9, topics=3)


def owners(state: State, topics: int) -> dict[MessageQueue, int]:
    """By queue the number of the member that AVG gives it to, by the literal port."""
    found = {}
    for topic in names("topic", range(topics)):
        brokers = names("broker", range(len(state.queues)))
        counts = zip(brokers, state.queues, strict=True)
        queues = [MessageQueue(topic, broker, i) for broker, n in counts for i in range(n)]
        for queue, holders in allocate_group(
            make_strategy("AVG", {}), queues, names("client", state.members)
        ).items():
            (holder,) = holders
            found[queue] = int(holder.rpartition("-")[2])
    return found


@pytest.mark.parametrize("change", CHANGES)
def test_the_kernels_give_what_the_strategy_gives(change: str) -> None:
    point = replace(SMALL, change=change)
    answer = kernels_on(point, enough=0).answer
    after = owners(point.after, point.topics)
    before = owners(point.before, point.topics) if point.before else {}
    numbers = np.array([after[queue] for queue in sorted(after)], ">i4")
    shares = np.bincount(numbers, minlength=20)[list(point.after.members)]
    moved = sum(after[queue] != before[queue] for queue in after.keys() & before.keys())
    assert answer.crc == zlib.crc32(numbers.tobytes())
    assert (answer.most, answer.fewest) == (shares.max(), shares.min())
    assert answer.moves == moved
    assert (moved > 0) is (change not in (FULL,))


def test_a_line_for_java() -> None:
    point = Point(members=8, per_member=6, topics=2)
    assert str(point) == "JOIN_ONE 8 x 6 x 2"
    assert point.line() == "JOIN_ONE 8 x 6 x 2\t2\t0-1,3-7\t6,6,6,6\t0-7\t6,6,6,6"
    assert replace(point, change=FULL).line().split("\t")[2:4] == ["-", "-"]


def test_the_star_has_every_axis_and_change() -> None:
    points = star()
    assert len(set(points)) == len(points)
    assert {p.members for p in points} == {100, 500, 1_000, 5_000, 10_000}
    assert {p.per_member for p in points} == {5, 10, 50}
    assert {p.topics for p in points} == {10, 100, 1_000}
    assert {p.change for p in points} == set(CHANGES)


def test_every_jar_has_a_checksum() -> None:
    jars = locked_jars()
    assert len({jar.file_name for jar in jars}) == len(jars) >= 10
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in jars)
