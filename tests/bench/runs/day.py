"""`python -m tests.bench.runs.day`: a generated day of a fleet, in a process and on Spark."""

import tempfile
from pathlib import Path

from rebalance_core.process.generate import generate_and_write
from rebalance_core.synthetic.fleet import FleetPlan
from tests.bench.report import Figure, Report, Table, bench_main, say, tidy
from tests.bench.runs.jobs import MEMORY_LIMIT_MIB, empty_application, run_job
from tests.bench.runs.yardstick import yardstick

WHOLE_DAY = 10_000
"""Groups that the targets are for."""
PROCESS_SECONDS, TIMES_PROCESS = 90.0, 1.5
REPLAYED = 1 / 10_000
ABOUT = """\
`rebalance generate`'s day, seed 1: groups of all kinds, offsets and commits, from Parquet to
Parquet, all tables. An empty Spark application starts Spark, reads the same files and writes one
row. Asserted: both carriers wrote the same rows and digests, and at most one group in 10,000 was
left to the plain replay."""


def day(groups: int = 1_000, spark: int = 1) -> Report:
    """Run a day of so many groups.

    Args:
        groups: How many; the targets are for 10,000.
        spark: 0: in a process only.
    """
    unit = yardstick()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "day"
        generate_and_write(FleetPlan(groups=groups, days=1, seed=1), source)
        runs = {}
        for carrier in ("process", "spark") if spark else ("process",):
            output = Path(folder) / carrier
            runs[carrier] = run_job("simulate", output, "--input", str(source), "--run-on", carrier)
            say(f"  {groups:,} groups {carrier}: {runs[carrier].cost.seconds:.1f} s")
        empty = empty_application(source) if spark else None
    process = runs["process"]
    assert all(run.digests == process.digests for run in runs.values()), "other rows on Spark"
    replayed = process.record["replayed_groups"]
    assert replayed <= max(1, groups * REPLAYED), f"{replayed} groups were replayed"
    seconds = process.cost.processor_seconds
    whole = groups == WHOLE_DAY
    figures = [
        Figure(f"a day of {groups:,} groups in a process", tidy(seconds), "s",
               target=PROCESS_SECONDS if whole else None),
        Figure(f"a day of {groups:,} groups in a process / yardstick", tidy(seconds / unit)),
    ]  # fmt: skip
    peaks = [c for run in runs.values() for kind, c in run.cost.peak_mib.items() if kind != "jvm"]
    costs = {name: run.cost for name, run in runs.items()}
    if empty is not None:
        costs["an empty Spark application"] = empty
        above = runs["spark"].cost.processor_seconds - empty.processor_seconds
        figures.append(
            Figure(f"(a day of {groups:,} groups on Spark - an empty application) / in a process",
                   tidy(above / seconds), target=TIMES_PROCESS if whole else None)
        )  # fmt: skip
    figures.append(
        Figure(f"most memory of a process that is no JVM, a day of {groups:,} groups",
               round(max(peaks)), "MiB", target=MEMORY_LIMIT_MIB)
    )  # fmt: skip
    inputs = {one["table"]: one["rows"] for one in process.record["inputs"]}
    outputs = process.record["outputs"]
    return Report(
        "A day of a fleet",
        ABOUT,
        tuple(figures),
        (
            Table(
                ("run", "processor s", "s", "worker or process, MiB", "JVM, MiB"),
                tuple(
                    (name, tidy(c.processor_seconds), tidy(c.seconds),
                     round(max(m for kind, m in c.peak_mib.items() if kind != "jvm")),
                     round(c.peak_mib["jvm"]) if "jvm" in c.peak_mib else None)
                    for name, c in costs.items()
                ),
                f"{groups:,} groups; {sum(inputs.values()):,} rows in, {process.rows:,} out.",
            ),
            Table(
                ("table", "rows"),
                tuple((n, r) for n, r in inputs.items())
                + tuple((n, t["rows"]) for n, t in outputs.items()),
            ),
        ),
    )  # fmt: skip


if __name__ == "__main__":
    bench_main(day, __doc__, groups=1_000, spark=1)
