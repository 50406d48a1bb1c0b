"""A FIFO group of two receivers, one of which acknowledges nothing: what the queues gave, and what
the broker's store of order locks shows of it.
"""

import csv
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from rebalance_core.cli.main import main

HERE = Path(__file__).parent
TRUTH = HERE / "fifo_receives.tsv"
"""Each message that a client of the group received."""
INVISIBLE_MS = 20_000
EARLY_MS, LATE_MS = 500, 1_000
"""A client notes the messages of a batch one by one, so some time after the broker's pop."""
Row = dict[str, Any]


def received(queue_id: int) -> list[Row]:
    with TRUTH.open(encoding="utf-8") as file:
        rows = [
            {name: text if name == "client" else int(text) for name, text in row.items()}
            for row in csv.DictReader(file, delimiter="\t")
        ]
    return [row for row in rows if row["queue_id"] == queue_id]


@pytest.mark.parametrize("queue_id", [0, 1])
def test_a_queue_gives_nothing_more_until_what_it_gave_is_visible_again(queue_id: int) -> None:
    """And gives that again then, without the seconds of a revive."""
    last: dict[int, Row] = {}
    repeated = 0
    for row in received(queue_id):
        before = last.get(row["offset"])
        if before is None:
            assert row["offset"] == len(last), row
            assert row["attempt"] == 1
            # whatever f2 had before, f1 or f2 got again first
            held = [one for one in last.values() if one["client"] == "f2"]
            same_batch = [one for one in held if row["at_ms"] - one["at_ms"] < LATE_MS]
            assert held == same_batch, row
        else:
            repeated += 1
            assert row["attempt"] == before["attempt"] + 1
            wait_ms = row["at_ms"] - before["at_ms"]
            assert INVISIBLE_MS - EARLY_MS <= wait_ms <= INVISIBLE_MS + LATE_MS, row
        last[row["offset"]] = row
    assert repeated == {0: 25, 1: 18}[queue_id]


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    output = tmp_path_factory.mktemp("fifo") / "tables"
    words = ["--collection", str(HERE / "data" / "fifo-two-receivers"), "--output", str(output)]
    assert main("ingest", words) == 0
    facts = ds.dataset(output / "observed_facts", format="parquet").to_table().to_pylist()
    return [row | dict(row["details"]) for row in facts if row["kind"] == "ORDER_BLOCK"]


def test_each_lock_in_the_store_is_what_a_client_had_received(blocks: list[Row]) -> None:
    assert len(blocks) == 28
    assert {row["consumer_group"] for row in blocks} == {"fifo"}
    for block in blocks:
        pop_ms = int(block["pop_ms"])
        assert int(block["invisible_ms"]) == INVISIBLE_MS
        given = {
            row["offset"]
            for row in received(block["queue_id"])
            if pop_ms <= row["at_ms"] <= pop_ms + LATE_MS
        }
        assert {int(text) for text in block["offsets"].split(", ")} <= given, block
        if block["blocked_until_ms"]:
            assert int(block["blocked_until_ms"]) == pop_ms + INVISIBLE_MS
    ends = [row["queue_id"] for row in blocks if not row["blocked_until_ms"]]
    assert ends == [1]  # acknowledged: it blocks no more
