"""`python -m tests.bench.driver_memory GROUPS …`: what the driver of a simulation holds.

Tasks send the driver notes: what groups read (`Interests`), and what became of them
(`LedgerFacts`). Here they are made up: those of a generated fleet, under other names as often as it
takes. Each size has a process of its own, which merges the notes and deals the groups out as
`spark.ledger` does; memory is the most that it held, less what it held before.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rebalance_core.cli.main import main as rebalance
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.engine.routing import Interests, interests_of, routing_of
from rebalance_core.engine.table_writer import LedgerFacts
from tests.bench.process_tree import _status

FLEET = 1_000
"""Groups of the fleet: those of a task."""
GROUPS_PER_TASK = 1_000


def notes_of_fleet(folder: Path) -> tuple[Interests, LedgerFacts]:
    """Those of a generated day of `FLEET` groups."""
    tables, ledger = str(folder / "tables"), str(folder / "ledger")
    rebalance("generate", ["--groups", str(FLEET), "--output", tables, "--run-on", "process"])
    rebalance("simulate", ["--input", tables, "--output", ledger, "--run-on", "process"])
    read = [interests_of(name, rows_of(tables, name)) for name in ("cluster_events",)]
    facts = LedgerFacts()
    for name in ("epochs", "group_metrics", "pull_starts"):
        for batch in rows_of(ledger, name).to_batches():
            facts.add(name, batch)
    return Interests.merged(filter(None, read)), facts


def rows_of(folder: str, name: str) -> pa.Table:
    rows = ds.dataset(f"{folder}/{name}", format="parquet").to_table()
    return rows.cast(ALL_TABLES[name].arrow_schema())


def renamed(notes: tuple[Interests, LedgerFacts], task: int) -> Iterator[bytes]:
    """The notes of another task with as many groups and topics."""
    interests, facts = notes
    other = LedgerFacts()
    other._groups = {(c, f"{g}-{task:05}"): of.copy() for (c, g), of in facts._groups.items()}
    other._moved = Counter({(c, f"{g}-{task:05}"): n for (c, g), n in facts._moved.items()})
    tables = {
        name: with_end(rows, f"-{task:05}", {GROUP[1], "topic"})
        for name, rows in vars(interests).items()
    }
    yield pickle.dumps(Interests(**tables))
    yield pickle.dumps(other)


def with_end(rows: pa.Table, end: str, columns: set[str]) -> pa.Table:
    for number, name in enumerate(rows.column_names):
        if name in columns:
            ended = pc.binary_join_element_wise(rows[name], end, "")
            rows = rows.set_column(number, name, ended)
    return rows


def merged(path: Path, groups: int) -> tuple[float, float]:
    """MiB that merging takes, and that the notes themselves are."""
    before = mib("VmRSS")
    with path.open("rb") as file:
        notes = [pickle.load(file) for _ in range(2 * groups // FLEET)]
    interests = Interests.merged(pickle.loads(note) for note in notes[::2])
    routing = routing_of(interests, max(1, groups // GROUPS_PER_TASK), None)
    facts = LedgerFacts()
    for note in notes[1::2]:
        facts.merge(pickle.loads(note))
    facts.totals(10)
    assert len(facts._groups) == interests.groups.num_rows == groups, routing
    return mib("VmHWM") - before, sum(map(len, notes)) / (1 << 20)


def mib(name: str) -> float:
    return int(_status(os.getpid())[name].split()[0]) / 1024


def main(words: list[str]) -> None:
    """Print a row for each size."""
    if words[0] == "merge":
        taken, sent = merged(Path(words[1]), int(words[2]))
        print(f"| {int(words[2]):,} | {sent:,.1f} | {taken:,.0f} |")
        return
    with tempfile.TemporaryDirectory() as folder:
        notes, path = notes_of_fleet(Path(folder)), Path(folder) / "notes"
        for groups in map(int, words):
            with path.open("wb") as file:
                for task in range(groups // FLEET):
                    for note in renamed(notes, task):
                        pickle.dump(note, file)
            words = ["tests.bench.driver_memory", "merge", str(path), str(groups)]
            subprocess.run([sys.executable, "-m", *words], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
