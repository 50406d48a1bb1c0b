"""`queue_progress` against its rules, stated plainly, on random observations."""

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rebalance_core.contracts import ALL_TABLES, PROGRESS_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.times import MINUTE_MS, STANDSTILL_MS
from rebalance_core.process.queue_progress import (
    _before,
    _Seen,
    queue_progress,
    with_expiry,
    with_holders,
)

Row = dict[str, Any]
QUEUES = [("T", "a", 0), ("T", "b", 0), ("T", "a", 1), ("U", "a", 0)]
GROUPS = "g", "h"
BEGIN_MS = 1_795_000_000_000
FLICKER_MS = 10_000
NEVER = -1


def table_of(name: str, rows: list[Row]) -> pa.Table:
    return pa.Table.from_batches([batch_of_rows(ALL_TABLES[name], rows)])


def named(queue: tuple[str, str, int], **more: Any) -> Row:
    topic, broker, number = queue
    return {"cluster": "c", "topic": topic, "broker_name": broker, "queue_id": number} | more


def random_rows(draw: random.Random) -> tuple[list[Row], list[Row], list[Row]]:
    """Commits, ends and answers of consumerProgress, of which some stand still or fall."""
    commits, ends, asked = [], [], []
    seconds = draw.choice([30, 100, 400])
    for queue in QUEUES:
        high = 0
        for step in range(draw.randrange(4)):
            high = max(0, high + draw.choice([0, 5, 60, -20]))
            at_ms = BEGIN_MS + step * seconds * 1000 + draw.randrange(3000)
            ends.append(
                named(
                    queue,
                    observed_ms=at_ms,
                    min_offset=min(high, draw.choice([0, 0, 3])),
                    max_offset=high,
                    head_cached=None,
                )
            )
        for group in GROUPS:
            low = draw.randrange(30)
            for step in range(draw.randrange(5)):
                low = max(0, low + draw.choice([0, 0, 0, 9, -4]))
                at_ms = BEGIN_MS + step * seconds * 1000 + draw.randrange(3000)
                client = draw.choice([None, None, "x"])
                if draw.random() < 0.7:
                    row = {"observed_ms": at_ms, "committed_offset": low, "client_id": client}
                    commits.append(named(queue, consumer_group=group, **row))
                else:
                    details = {"broker_offset": str(low + 7), "consumer_offset": str(low)}
                    if draw.random() < 0.7:
                        details["last_time_ms"] = str(at_ms - draw.randrange(500_000))
                    details["names_cut"] = draw.choice(["false", "false", "true"])
                    asked.append(
                        named(
                            queue,
                            consumer_group=group,
                            kind="QUEUE_PROGRESS",
                            first_ms=at_ms,
                            last_ms=at_ms,
                            times=1,
                            details=details,
                            client_id=None,
                            source="f:1",
                        )
                    )
    return commits, ends, asked


def plainly(
    commits: list[Row], ends: list[Row], asked: list[Row], read: set[tuple[str, str]]
) -> dict[Any, Row]:
    """The rows by group and queue, one observation after the other."""
    whole = [row for row in asked if row["details"]["names_cut"] == "false"]
    seen: dict[Any, list[tuple[int, int, str]]] = {}
    consumed: dict[Any, list[tuple[int, int]]] = {}
    for row in commits:
        key = row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"]
        of = seen.setdefault(key, [])
        of.append((row["observed_ms"], row["committed_offset"], row["client_id"] or ""))
    high: dict[Any, list[tuple[int, int, int]]] = {}
    asked_of = set()
    for row in ends:
        queue = row["topic"], row["broker_name"], row["queue_id"]
        for group in GROUPS:
            look = row["observed_ms"], row["max_offset"], row["min_offset"]
            high.setdefault((group, *queue), []).append(look)
    for row in whole:
        queue = row["topic"], row["broker_name"], row["queue_id"]
        offset, at_ms = int(row["details"]["consumer_offset"]), row["first_ms"]
        if offset:
            seen.setdefault((row["consumer_group"], *queue), []).append((at_ms, offset, "mqadmin"))
            stored = offset, int(row["details"].get("last_time_ms", NEVER))
            consumed.setdefault((row["consumer_group"], *queue), []).append(stored)
        # an answer on one group is no look for another: a task of Spark has the group's rows alone
        own = (row["consumer_group"], *queue)
        high.setdefault(own, []).append((at_ms, int(row["details"]["broker_offset"]), -1))
        asked_of.add(own)
    keys = set(seen) | asked_of | {key for key in high if key[:2] in read}
    return {
        key: of_queue(sorted(seen.get(key, [])), sorted(high.get(key, [])), consumed.get(key, []))
        for key in keys
    }


def of_queue(
    seen: list[tuple[int, int, str]],
    high: list[tuple[int, int, int]],
    consumed: list[tuple[int, int]],
) -> Row:
    row: Row = dict.fromkeys(
        ("committed", "committed_ms", "end_offset", "end_ms", "unread", "still_since_ms", "reason")
    )
    if seen:
        row["committed_ms"], row["committed"], _ = seen[-1]
    if high:
        row["end_ms"], row["end_offset"], _ = high[-1]
    # consumerProgress has no minimum
    low = next((minimum for _, _, minimum in reversed(high) if minimum >= 0), 0)
    row["commit_rate"] = longest_rate([(c, t, v) for t, v, c in seen])
    row["end_rate"] = longest_rate([("", t, v) for t, v, _ in high])
    looks = [(t, max(v - commit_at(seen, t), 0)) for t, v, _ in high if seen and seen[0][0] <= t]
    none_unread = [look for look in looks if look[1] == 0]
    first = next(iter(none_unread[-1:] or looks[:1]), (None, None))
    row["unread_before_ms"], row["unread_before"] = first
    at = seen[-1][1] if seen else None
    empty = [t for t, v, _ in high if at is not None and v <= at]
    stored_ms = max([NEVER, *empty, *(t for offset, t in consumed if offset == at)])
    row["stored_ms"] = None if stored_ms == NEVER else stored_ms
    if not seen or not high:
        row["reason"] = "NO_END" if seen else "NO_COMMIT"
        return row
    row["unread"] = max(row["end_offset"] - max(row["committed"], low), 0)
    if row["end_offset"] < row["committed"]:
        row["reason"] = "END_BELOW_COMMIT"
    elif fell([(t, v) for t, v, _ in seen]):
        row["reason"] = "COMMIT_FELL"
    elif abs(row["end_ms"] - row["committed_ms"]) > MINUTE_MS:
        row["reason"] = "READ_APART"
    row["still_since_ms"] = still_since([(t, v) for t, v, _ in seen], [(t, v) for t, v, _ in high])
    return row


def commit_at(seen: list[tuple[int, int, str]], at_ms: int) -> int:
    """Return the last commit by that time."""
    return [v for t, v, _ in seen if t <= at_ms][-1]


def fell(seen: list[tuple[int, int]]) -> bool:
    last_ms, offset = seen[-1]
    return any(v > offset and t < last_ms - MINUTE_MS for t, v in seen)


def longest_rate(looks: list[tuple[str, int, int]]) -> float | None:
    best, rate = 0, None
    for clock in sorted({clock for clock, _, offset in looks if offset > 0}):
        mine = sorted((t, v) for c, t, v in looks if c == clock and v > 0)
        first = mine[0]
        for before, after in pairwise(mine):
            if after[1] < before[1] and after[0] - before[0] > FLICKER_MS:
                first = after
        lasted = mine[-1][0] - first[0]
        if lasted > 0 and lasted >= best:
            best, rate = lasted, max(mine[-1][1] - first[1], 0) * 1000 / lasted
    return rate


def still_since(seen: list[tuple[int, int]], high: list[tuple[int, int]]) -> int | None:
    until, offset = seen[-1]
    if fell(seen):
        return None
    begin = until
    for at_ms, earlier in reversed(seen):
        if earlier != offset:
            break
        begin = at_ms
    looked = [(t, v) for t, v in high if t <= until + MINUTE_MS]
    idle = [t for t, v in looked if v <= offset]
    above = [(t, v) for t, v in looked if v > offset and (not idle or t > idle[-1])]
    if not above:
        return None
    since = max(begin, idle[-1]) if idle else begin
    grown = bool(idle) or max(v for _, v in above) > min(v for _, v in above)
    waited = until - max(since, min(above[0][0], until))
    return since if grown and waited >= STANDSTILL_MS else None


@pytest.mark.parametrize("seed", range(60))
def test_random_observations(seed: int) -> None:
    draw = random.Random(seed)
    commits, ends, asked = random_rows(draw)
    read = {("g", "T"), ("h", "U")}
    tables = {
        "committed_offsets": table_of("committed_offsets", commits),
        "queue_offsets": table_of("queue_offsets", ends),
        "observed_facts": table_of("observed_facts", asked),
    }
    names = ["cluster", "consumer_group", "topic"]
    topics = pa.table([["c", "c"], ["g", "h"], ["T", "U"]], names)
    made = {
        (row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"]): row
        for row in queue_progress(tables, topics).to_pylist()
    }
    expected = plainly(commits, ends, asked, read)
    assert made.keys() == expected.keys()
    for key, row in expected.items():
        for name, value in row.items():
            assert made[key][name] == pytest.approx(value), (key, name)


def test_some_seed_stands_still_and_some_rate_ends_at_a_fall() -> None:
    """The random rows reach what the test above is for."""
    found = set()
    for seed in range(60):
        rows = plainly(*random_rows(random.Random(seed)), {("g", "T"), ("h", "U")})
        found |= {row["reason"] for row in rows.values()}
        found |= {"still" for row in rows.values() if row["still_since_ms"] is not None}
        found |= {"stored" for row in rows.values() if row["stored_ms"] is not None}
    assert found == {
        None,
        "still",
        "stored",
        "NO_END",
        "NO_COMMIT",
        "END_BELOW_COMMIT",
        "COMMIT_FELL",
        "READ_APART",
    }


def test_without_any_offset_there_is_no_row() -> None:
    names = ["cluster", "consumer_group", "topic"]
    rows = queue_progress({}, pa.table([["c"], ["g"], ["T"]], names))
    assert rows.num_rows == 0
    assert rows.column_names[: len(PROGRESS_TABLES["queue_progress"].columns)] == list(
        PROGRESS_TABLES["queue_progress"].column_names
    )


def test_a_broadcasting_group_has_no_row() -> None:
    commit = named(QUEUES[0], consumer_group="g", observed_ms=1, committed_offset=1, client_id="x")
    settings = dict.fromkeys(ALL_TABLES["consumer_groups"].column_names)
    settings |= {"cluster": "c", "consumer_group": "g", "message_model": BROADCASTING}
    tables = {
        "committed_offsets": table_of("committed_offsets", [commit]),
        "consumer_groups": table_of("consumer_groups", [settings]),
    }
    topics = pa.table([["c"], ["g"], ["T"]], ["cluster", "consumer_group", "topic"])
    assert queue_progress(tables, topics).num_rows == 0


def test_commit_and_end_of_a_lite_topic_show_nothing() -> None:
    commits = [
        named(queue, consumer_group=group, observed_ms=at, committed_offset=1, client_id=None)
        for queue in (QUEUES[0], QUEUES[3])
        for group in GROUPS
        for at in (0, 900_000)
    ]
    ends = [
        named(queue, observed_ms=at, min_offset=0, max_offset=high, head_cached=None)
        for queue in (QUEUES[0], QUEUES[3])
        for at, high in ((1, 5), (900_000, 9))
    ]
    finding = dict.fromkeys(ALL_TABLES["findings"].column_names)
    finding |= {"cluster": "c", "consumer_group": "g", "topic": "T", "severity": "INFO"}
    finding |= {"rule_id": "INGEST_LITE_TOPIC", "summary": "", "evidence": {}}
    tables = {
        "committed_offsets": table_of("committed_offsets", commits),
        "queue_offsets": table_of("queue_offsets", ends),
        "findings": table_of("findings", [finding, finding | {"consumer_group": None}]),
    }
    topics = pa.table([["c"], ["g"], ["T"]], ["cluster", "consumer_group", "topic"])
    rows = {
        (row["consumer_group"], row["topic"]): row
        for row in queue_progress(tables, topics).to_pylist()
    }
    lite = rows.pop(("g", "T"))
    assert (lite["committed"], lite["end_offset"], lite["reason"]) == (1, 9, "LITE_TOPIC")
    figures = ("unread", "commit_rate", "end_rate", "still_since_ms", "waits_since_ms")
    assert {lite[name] for name in (*figures, "unread_before")} == {None}
    assert {(row["unread"], row["reason"]) for row in rows.values()} == {(8, None)}
    assert all(row["still_since_ms"] is not None for row in rows.values())


def test_the_holder_is_the_one_member_that_holds_it_at_the_end() -> None:
    commits = [
        named(queue, consumer_group="g", observed_ms=1, committed_offset=1, client_id=None)
        for queue in QUEUES
    ]
    tables = {"committed_offsets": table_of("committed_offsets", commits)}
    topics = pa.table([["c"], ["g"], ["T"]], ["cluster", "consumer_group", "topic"])
    rows = queue_progress(tables, topics)
    numbers = {"from_epoch": 0, "from_ms": 0, "holders": 1, "to_epoch": None}
    owned = [
        named(queue, consumer_group="g", client_id=client, to_ms=to_ms, **numbers)
        for queue, client, to_ms in (
            (QUEUES[0], "x", None),
            (QUEUES[0], "y", 5),
            (QUEUES[1], "x", None),
            (QUEUES[1], "y", None),
            (QUEUES[2], None, None),
        )
    ]
    held = with_holders(rows, table_of("ownership", owned)).to_pylist()
    by_queue = {(row["topic"], row["broker_name"], row["queue_id"]): row for row in held}
    assert [by_queue[queue]["client_id"] for queue in QUEUES] == ["x", None, None, None]
    assert with_holders(rows, None).equals(rows)


def test_an_unread_message_is_deleted_after_the_time_that_its_broker_keeps_it() -> None:
    rows = [
        named(queue, consumer_group="g", observed_ms=10_000, committed_offset=5, client_id=None)
        for queue in QUEUES
    ]
    looks = [
        (QUEUES[0], 5, 7_000),
        (QUEUES[0], 9, 9_000),
        (QUEUES[1], 5, 7_000),
        (QUEUES[2], 9, 9_000),
    ]
    ends = [
        named(queue, observed_ms=at_ms, min_offset=0, max_offset=high, head_cached=None)
        for queue, high, at_ms in looks
    ]
    tables = {"committed_offsets": table_of("committed_offsets", rows)}
    tables["queue_offsets"] = table_of("queue_offsets", ends)
    topics = pa.table([["c"], ["g"], ["T"]], ["cluster", "consumer_group", "topic"])
    progress = queue_progress(tables, topics)

    def expires(kept_ms: dict[tuple[str, str], int]) -> list[int | None]:
        by_queue = {
            (row["topic"], row["broker_name"], row["queue_id"]): row["expires_ms"]
            for row in with_expiry(progress, kept_ms).to_pylist()
        }
        return [by_queue[queue] for queue in QUEUES]

    # nothing is unread in the second, and no look shows when the third was empty
    assert expires({("c", "a"): 50_000, ("c", "b"): 50_000}) == [57_000, None, None, None]
    assert expires({("c", "b"): 50_000}) == expires({}) == [None] * 4
    # it was still there at the last look
    assert expires({("c", "a"): 10}) == [9_000, None, None, None]


def test_one_absurd_date_leaves_the_other_rows_compared() -> None:
    """Rows and times are numbered together, which must not overflow."""
    rows = 80_000
    of, made, zeros = np.arange(rows), np.full(rows, 1_795_000_000_000), np.zeros(rows, np.int64)
    seen = made + 1_000
    seen[0] = 253_402_300_799_999  # 9999-12-31
    commits, ends = (
        _Seen(of, at_ms, np.full(rows, offset), zeros) for at_ms, offset in ((made, 10), (seen, 50))
    )
    before, at_ms, compared = _before(commits, ends, rows)
    assert compared.all()
    assert set(before.tolist()) == {40}
    assert (at_ms == seen).all()
