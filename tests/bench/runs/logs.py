"""`python -m tests.bench.runs.logs`: ingest of a large collection of logs."""

import shutil
import tempfile
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE
from tests.bench.process_tree import Cost
from tests.bench.report import Figure, Report, Table, bench_main, say, tidy
from tests.bench.runs.jobs import MEMORY_LIMIT_MIB, JobRun, run_job
from tests.bench.runs.log_files import Logs, write_logs
from tests.bench.runs.yardstick import yardstick

TITLE = "Ingest of logs"
ROOM = 2
"""Free disk that is asked for, in sizes of the collection."""
TENTH_MEGABYTES, TENTH_GIANT_LINES = 60, 22_000
"""One line in ten states something, as in a broker.log of a busy cluster."""
NIGHT_MEGABYTES, NIGHT_GIANT_LINES, GROWTH = 300, 2_000, 0.02
"""Of the night after another."""
ABOUT = """\
`rebalance ingest` reads the logs of two brokers. Half of the facts are about one group, and most
lines are irrelevant. The bench asserts that every line was read and none rejected, that the joins
and leaves are those in the logs, and that a run with `--state` writes the same rows."""


def logs(megabytes: int = 100, giant_lines: int = 20_000) -> Report:
    """Make the logs and ingest them where the job chooses to, and some in a process.

    Args:
        megabytes: Of both files together.
        giant_lines: About one group.
    """
    unit = yardstick()
    with tempfile.TemporaryDirectory() as scratch:
        free = shutil.disk_usage(scratch).free / 1e6
        if free < ROOM * megabytes:
            why = f"{megabytes:,} MB of logs: {scratch} has only {free:,.0f} MB free"
            return Report(TITLE, ABOUT, left_out=(f"{why}, not {ROOM} times as many.",))
        large, row = _ingested(Path(scratch) / "large", megabytes, giant_lines)
        tenth, row_of_tenth = _ingested(
            Path(scratch) / "tenth", TENTH_MEGABYTES, TENTH_GIANT_LINES, "--run-on", "process"
        )
        night_after = _night_after(Path(scratch) / "nights")
    return Report(
        TITLE,
        ABOUT,
        (
            Figure(f"ingest of {megabytes:,} MB / yardstick", tidy(large.processor_seconds / unit)),
            Figure(
                "ingest in a process, one line in ten states something / yardstick",
                tidy(tenth.processor_seconds / unit),
            ),
            Figure(
                f"ingest of logs that grew by {GROWTH:.0%}, with --state / without",
                tidy(night_after),
            ),
            Figure(
                f"most memory of a process that is no JVM, ingest of {megabytes:,} MB",
                _most_mib(large),
                "MiB",
                target=MEMORY_LIMIT_MIB,
            ),
        ),
        (
            Table(
                (
                    "MB",
                    "lines",
                    "lines about one group",
                    "carrier",
                    "processor s",
                    "s",
                    "MB a processor second",
                    "worker or process, MiB",
                    "JVM, MiB",
                ),
                (row, row_of_tenth),
            ),
        ),
    )


def _ingested(
    folder: Path, megabytes: int, giant_lines: int, *options: str
) -> tuple[Cost, tuple[str | float | int | None, ...]]:
    """Make logs and ingest them: the cost and the row of the table."""
    made = write_logs(folder / "collection", megabytes, giant_lines)
    say(f"  {made.bytes / 1e6:,.0f} MB, {made.lines:,} lines")
    run = run_job("ingest", folder / "tables", "--collection", f"{folder}/collection", *options)
    _hold_expected(made, run, folder / "tables")
    cost, size = run.cost, made.bytes / 1e6
    return cost, (
        round(size),
        made.lines,
        giant_lines,
        str(run.record["run_on"]),
        tidy(cost.processor_seconds),
        tidy(cost.seconds),
        tidy(size / cost.processor_seconds),
        _most_mib(cost),
        round(cost.peak_mib["jvm"]) if "jvm" in cost.peak_mib else None,
    )


def _night_after(folder: Path) -> float:
    """Ingest logs that have grown, with and without the state before: the ratio of costs."""
    made = write_logs(folder / "grown", NIGHT_MEGABYTES, NIGHT_GIANT_LINES)
    shutil.copytree(folder / "grown", folder / "before")
    for log in (folder / "before").rglob("*.log"):
        content = log.read_bytes()
        log.write_bytes(content[: content.rfind(b"\n", 0, int(len(content) / (1 + GROWTH))) + 1])
    here = "--run-on", "process"
    run_job("ingest", folder / "state", "--collection", f"{folder}/before", *here)
    grown = "--collection", f"{folder}/grown", *here
    whole = run_job("ingest", folder / "whole", *grown)
    after = run_job("ingest", folder / "after", *grown, "--state", f"{folder}/state")
    _hold_expected(made, after, folder / "after")
    assert after.record["outputs"] == whole.record["outputs"], "other rows with a state"
    return after.cost.processor_seconds / whole.cost.processor_seconds


def _most_mib(cost: Cost) -> int:
    return round(max(mib for kind, mib in cost.peak_mib.items() if kind != "jvm"))


def _hold_expected(made: Logs, run: JobRun, tables: Path) -> None:
    files = run.record["files"]
    assert sum(one["understood"] for one in files) == made.lines, "lines were not understood"
    assert run.record["outputs"]["rejected"]["rows"] == 0, "lines were rejected"
    events = ds.dataset(tables / "cluster_events", format="parquet").to_table(["event_type"])
    found = {o["values"]: o["counts"] for o in pc.value_counts(events["event_type"]).to_pylist()}
    expected = (made.clients, made.left)
    assert (found[CONSUMER_JOIN], found[CONSUMER_LEAVE]) == expected, f"{found}, not {expected}"


if __name__ == "__main__":
    bench_main(logs, __doc__, megabytes=100, giant_lines=20_000)
