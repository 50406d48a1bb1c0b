"""Made-up histories and logs: what is known of them is what the product finds in them."""

from pathlib import Path
from typing import Any

import rebalance_core
from rebalance_core.engine.options import REFERENCE, SimulationOptions
from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE
from tests.bench.histories import Shape, history
from tests.bench.runs.log_files import GIANT, write_logs

SHAPE = Shape(groups=3, members=4, topics=2, brokers=2, queues=3, epochs=5)


def test_every_event_makes_an_epoch() -> None:
    options = SimulationOptions(engine=REFERENCE, include_retry_topics=False)
    ledger = rebalance_core.simulate({"cluster_events": history(SHAPE)}, options)
    assert ledger.rejected.num_rows == 0
    assert ledger.epochs.num_rows == SHAPE.groups * SHAPE.epochs
    assert not any(ledger.epochs["transient"].to_pylist())
    lengths = [
        (SHAPE.epochs if row["to_epoch"] is None else row["to_epoch"]) - row["from_epoch"]
        for row in ledger.ownership.to_pylist()
    ]
    assert sum(lengths) == SHAPE.cells == 3 * 12 * 5


def test_the_logs_say_what_was_asked_for(tmp_path: Path) -> None:
    made = write_logs(tmp_path / "logs", megabytes=2, giant_lines=600)
    assert 1.9e6 < made.bytes < 2.2e6
    files = sorted((tmp_path / "logs/brokers").rglob("broker.log"))
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert len(lines) == made.lines
    assert abs(sum(GIANT in line for line in lines) - 600) <= 10  # some had no time to leave
    tables: Any = read_collection(open_collection(tmp_path / "logs")).tables
    assert tables["rejected"] == []
    types = [row["event_type"] for row in tables["cluster_events"]]
    assert types.count(CONSUMER_JOIN) == made.clients == 200
    assert types.count(CONSUMER_LEAVE) == made.left
