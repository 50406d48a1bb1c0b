"""Runs of a job as a process, with what they took and what they wrote."""

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from tests.bench.process_tree import Cost, cost_of
from tests.tree import TREE

EMPTY_APPLICATION = "tests.bench.runs.empty_application"
MEMORY_LIMIT_MIB = 1024
"""What no process but the JVM should need."""


@dataclass(frozen=True)
class JobRun:
    """A finished job.

    Attributes:
        cost: What its whole process tree took.
        record: Its ``_run.json``.
    """

    cost: Cost
    record: dict[str, Any]

    @property
    def rows(self) -> int:
        """Rows of all tables written."""
        return sum(table["rows"] for table in self.record["outputs"].values())

    @property
    def digests(self) -> dict[str, tuple[int, str]]:
        """Rows and digest by table."""
        return {n: (t["rows"], t["digest"]) for n, t in self.record["outputs"].items()}


def run_job(job: str, output: Path, *arguments: str) -> JobRun:
    """Run a job into a fresh folder; it must succeed."""
    cost = cost_of_python(
        [str(TREE / f"jobs/{job}.py"), *arguments, "--output", str(output), "--overwrite"]
    )
    if cost.code != 0:
        raise RuntimeError(f"{job} ended with {cost.code}: {cost.errors}")
    return JobRun(cost, json.loads((output / "_run.json").read_text()))


def empty_application(folder: Path) -> Cost:
    """Spark started, the files of a folder read, one row written."""
    cost = cost_of_python(["-m", EMPTY_APPLICATION, str(folder)])
    if cost.code != 0:
        raise RuntimeError(f"the empty application ended with {cost.code}: {cost.errors}")
    return cost


def cost_of_python(arguments: list[str]) -> Cost:
    """Run this Python with the tree's own packages."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = {"PYTHONPATH": str(TREE)}
        command = [sys.executable, *arguments]
        return cost_of(command, environment=environment, scratch=Path(scratch))


def rows_of_group(output: Path, table: str, group: str) -> list[dict[str, Any]]:
    """The rows that a ledger has of one group, in a fixed order."""
    found = ds.dataset(output / table, format="parquet").to_table(
        filter=ds.field("consumer_group") == group
    )
    return in_order(found.to_pylist())


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in a fixed order, so that equal tables are equal lists."""
    return sorted(rows, key=repr)
