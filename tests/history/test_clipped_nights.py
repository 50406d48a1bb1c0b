"""Nothing is counted in two nights: a log that is read again each night sums up to one reading."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rebalance_core.contracts import AUDITED_TABLES, INPUT_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.history.night import Night, NightSpan, night_of
from rebalance_core.history.runs import Run
from rebalance_core.process.simulate import simulate
from tests.recordings.tables import RECORDINGS, derived_tables

SUMMED = ("joins", "leaves", "losses", "epochs", "transient", "moved", "orphan_ms", "shared_ms")
MINUTE_MS = 60_000


def recorded(name: str) -> dict[str, pa.Table]:
    rows = derived_tables(name)
    return {
        table: pa.Table.from_batches([batch_of_rows(INPUT_TABLES[table], rows.get(table, []))])
        for table in INPUT_TABLES
    }


def read_until(
    tables: dict[str, pa.Table], end_ms: int, before_ms: int | None = None, **begins: int
) -> Night:
    """The night of a run whose logs begin with the recording, and end then."""
    events = tables["cluster_events"]
    kept = events.filter(pc.less_equal(events["event_ms"], end_ms))
    ledger = simulate(tables | {"cluster_events": kept}).tables()
    groups = ledger["epochs"].select(["cluster", "consumer_group"]).to_pylist()
    named = sorted({(row["cluster"], row["consumer_group"]) for row in groups})
    judged: Any = {"verdict": "EQUAL", "reason": "", "unasked": [], "behind": 0}
    verdicts = [{"cluster": name, "consumer_group": group, **judged} for name, group in named]
    schema = pa.schema(
        [pa.field(f.name, f.type) for f in AUDITED_TABLES["group_verdicts"].arrow_schema()]
    )
    made = ledger | {
        "group_verdicts": pa.Table.from_pylist(verdicts, schema),
        "findings": AUDITED_TABLES["findings"].arrow_schema().empty_table(),
    }
    (cluster,) = events["cluster"].unique().to_pylist()
    audit: Any = {
        "start_ms": pc.min(events["event_ms"]).as_py(),
        "end_ms": end_ms,
        "verdict": "OK",
        "groups": {},
        "findings": {},
        **begins,
    }
    record: Any = {"run_id": "x", "library_version": "0", "audit": {"clusters": {cluster: audit}}}
    run = Run("x", record)

    def read(table: str, columns: Sequence[str]) -> pa.Table:
        return made[table].select(columns)

    return night_of(run, cluster, read, before_ms)


def sums(nights: Sequence[Night]) -> dict[tuple[str, str], int]:
    found: Counter[tuple[str, str]] = Counter()
    for night in nights:
        for row in night.groups.to_pylist():
            for name in SUMMED:
                found[row["consumer_group"], name] += row[name]
    return +found


@pytest.mark.parametrize("name", RECORDINGS)
def test_nights_of_a_longer_log_sum_up_to_one_reading(name: str) -> None:
    tables, draw = recorded(name), random.Random(f"{name} 7")
    times = tables["cluster_events"]["event_ms"].to_pylist()
    first, last = min(times), max(times) + MINUTE_MS
    whole = read_until(tables, last)
    expected = sums([whole])
    assert {key[1] for key in expected} >= {"joins", "epochs", "moved"}
    # at any time, and at that of an event
    cuts = sorted({draw.randrange(first, last), draw.choice(times), draw.choice(times)})
    nights, before_ms = [], None
    for end_ms in (*cuts, last):
        nights.append(read_until(tables, end_ms, before_ms))
        before_ms = end_ms
    assert sums(nights) == expected
    for figure in ("joins", "leaves", "short"):
        counted = [pc.sum(night.churn[figure]).as_py() or 0 for night in nights]
        assert sum(counted) == (pc.sum(whole.churn[figure]).as_py() or 0)
    for row in nights[-1].groups.to_pylist():
        (same,) = [
            one
            for one in whole.groups.to_pylist()
            if one["consumer_group"] == row["consumer_group"]
        ]
        for figure in ("members_last", "busiest", "idle"):
            assert row[figure] == same[figure]


def test_a_night_begins_as_its_run_has_it_and_never_before_the_last_one_ended() -> None:
    tables = recorded("scale-out")
    times = tables["cluster_events"]["event_ms"].to_pylist()
    first, last = min(times), max(times) + MINUTE_MS
    middle = (first + last) // 2
    for before_ms, night_ms, begin_ms in (
        (None, middle, middle),
        (middle, middle - 5, middle),
        (middle - 5, middle, middle),
        (None, first - 5, first),
    ):
        night = read_until(tables, last, before_ms, night_ms=night_ms)
        assert night.row["start_ms"] == begin_ms
    assert sums([read_until(tables, last, last)]) == {}


def test_members_stand_at_both_ends_of_the_night() -> None:
    tables = recorded("scale-out")
    times = tables["cluster_events"]["event_ms"].to_pylist()
    middle = sorted(times)[len(times) // 2]
    early = read_until(tables, middle).groups.to_pylist()
    late = read_until(tables, max(times) + MINUTE_MS, middle).groups.to_pylist()
    first = {row["consumer_group"]: row["members_first"] for row in late}
    last = {row["consumer_group"]: row["members_last"] for row in early}
    assert {name: first[name] for name in last} == last


def test_the_edges_of_a_night() -> None:
    """What happened at the moment at which a night ended is that night's."""
    span, times = NightSpan(10, 20), pa.chunked_array([[10, 11, 20, 21]])
    assert span.has(times).to_pylist() == [False, True, True, False]
    begins, ends = (
        pa.chunked_array([[0, 0, 12, 15, 20]]),
        pa.chunked_array([[10, 12, 13, 30, None]]),
    )
    assert span.lasts(begins, ends).to_pylist() == [0, 2, 1, 5, 0]
    assert span.touches(begins, ends).to_pylist() == [False, True, True, True, True]
