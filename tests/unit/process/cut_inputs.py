"""Cut input tables in two, and play the second part from the state of the first."""

import random
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.input_tables import ArrowTables, read_input_tables
from rebalance_core.contracts.run_names import STATE
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.process.simulate import simulate_and_write
from tests.recordings.tables import DATA, Row

TIMES = {
    "cluster_events": "event_ms",
    "queue_offsets": "observed_ms",
    "committed_offsets": "observed_ms",
}
Tables = Mapping[str, pa.Table]


def tables_of(recording: str) -> Tables:
    return read_input_tables(str(DATA / recording / "tables")).tables


def until(tables: Tables, end_ms: int) -> Tables:
    """Return what was known at a moment."""
    return {
        name: rows.filter(pc.less(rows[TIMES[name]], end_ms)) if name in TIMES else rows
        for name, rows in tables.items()
    }


def since(tables: Tables, begin_ms: int) -> Tables:
    return {
        name: rows.filter(pc.greater_equal(rows[TIMES[name]], begin_ms)) if name in TIMES else rows
        for name, rows in tables.items()
    }


def cuts_of(tables: Tables, seed: int, count: int) -> list[int]:
    """Return moments of events, after the first join."""
    events = tables["cluster_events"]
    joins = events.filter(pc.equal(events["event_type"], "CONSUMER_JOIN"))
    first = pc.min(joins["event_ms"]).as_py()
    moments = sorted({ms for ms in events["event_ms"].to_pylist() if ms > first})
    return random.Random(seed).sample(moments, min(count, len(moments)))


def state_of(tables: Tables, end_ms: int, folder: Path, options: SimulationOptions) -> str:
    """Simulate until a moment; return the folder of the state."""
    first = ArrowTables(until(tables, end_ms))
    simulate_and_write(first, folder / "ledger", options, state_output=folder / STATE)
    return str(folder / STATE)


def later_rows(ledger: Tables, begin_ms: int) -> dict[str, list[Row]]:
    """Return the rows of a whole ledger that begin at a moment or after it."""
    epochs = {
        (row["cluster"], row["consumer_group"], row["epoch"])
        for row in ledger["epochs"].to_pylist()
        if row["from_ms"] >= begin_ms
    }

    def later(row: Row) -> bool:
        begin = row.get("from_ms", row.get("change_ms"))
        if begin is not None:
            return bool(begin >= begin_ms)
        epoch = row["epoch"] if "epoch" in row else row["from_epoch"]
        return (row["cluster"], row["consumer_group"], epoch) in epochs

    return {
        name: [row for row in table.to_pylist() if name != "rejected" and later(row)]
        for name, table in ledger.items()
    }


def by_text(tables: Mapping[str, list[Row]]) -> dict[str, list[str]]:
    return {name: sorted(map(repr, rows)) for name, rows in tables.items()}


def opened(tmp_path: Path, recording: str = "join-leave") -> tuple[Tables, int, str]:
    tables = tables_of(recording)
    (cut_ms,) = cuts_of(tables, 1, 1)
    return tables, cut_ms, state_of(tables, cut_ms, tmp_path, SimulationOptions())
