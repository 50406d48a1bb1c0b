"""`python -m tests.bench.runs.propagation`: a fleet's futures in one command."""

import tempfile
from pathlib import Path

from tests.bench.report import Figure, Report, Table, bench_main, tidy
from tests.bench.runs.changing_groups import write_changing_groups
from tests.bench.runs.jobs import MEMORY_LIMIT_MIB, run_job
from tests.bench.runs.yardstick import yardstick

ABOUT = """\
`rebalance propagate` plays groups of 2 to 12 members and 24 queues, of which one in 21 is
orderly. The changes are joins, leaves, restarts, new queues, and the loss and return of a
broker. The bench asserts that `propagation` has a row for every change."""


def propagation(groups: int = 10, changes: int = 20, seeds: int = 1_000) -> Report:
    """Run it.

    Args:
        groups: How many.
        changes: Of each group.
        seeds: Futures of each group.
    """
    unit = yardstick()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "groups"
        write_changing_groups(source, groups, changes)
        run = run_job(
            "propagate", Path(folder) / "out", "--input", str(source), "--seeds", str(seeds)
        )
    rows = run.record["outputs"]["propagation"]["rows"]
    assert rows == groups * changes, f"{rows} changes in the table"
    seconds = run.cost.processor_seconds
    each = 1000 * seconds / rows * 1000 / seeds
    peak = max(mib for kind, mib in run.cost.peak_mib.items() if kind != "jvm")
    return Report(
        "Futures of a fleet",
        ABOUT,
        (
            Figure(f"propagate, {groups:,} groups / yardstick", tidy(seconds / unit)),
            Figure(f"propagate, {groups:,} groups: a change in 1,000 futures", tidy(each), "ms"),
            Figure(
                f"propagate, {groups:,} groups: most memory of a process",
                round(peak),
                "MiB",
                target=MEMORY_LIMIT_MIB,
            ),
        ),
        (
            Table(
                ("groups", "changes of each", "futures", "processor s", "s", "MiB a process"),
                ((groups, changes, seeds, tidy(seconds), tidy(run.cost.seconds), round(peak)),),
            ),
        ),
    )


if __name__ == "__main__":
    bench_main(propagation, __doc__, groups=10, changes=20, seeds=1_000)
