"""`python -m tests.bench.runs.giants`: single groups that are far too large."""

import tempfile
from pathlib import Path

from tests.bench.histories import Shape, history
from tests.bench.report import Figure, Report, Table, bench_main, say, tidy
from tests.bench.runs.fleets import hold_expected, write_events
from tests.bench.runs.jobs import MEMORY_LIMIT_MIB, run_job
from tests.bench.runs.yardstick import yardstick

WIDE = Shape(groups=1, members=2_000, topics=50, brokers=20, queues=1_000, epochs=2)
MEMBERS, QUEUES = 1_000, 10_000
ABOUT = """\
One group has a million queues and 2,000 members in two epochs. The other has 10,000 queues and
1,000 members in many epochs. Both use AVG, and all tables are written. The bench asserts the
same as for fleets, and that no row was rejected."""


def giants(epochs: int = 100, spark: int = 0) -> Report:
    """Run both.

    Args:
        epochs: Of the second one.
        spark: 1: on Spark, too.
    """
    unit = yardstick()
    rows, figures, peak = [], [], 0.0
    long = Shape(1, MEMBERS, 1, 10, QUEUES // 10, epochs)
    for name, shape in (("a million queues", WIDE), (f"{epochs:,} epochs", long)):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "input"
            write_events(history(shape), source)
            digests = None
            for carrier in ("process", "spark") if spark else ("process",):
                output = Path(folder) / carrier
                run = run_job("simulate", output, "--input", str(source), "--run-on", carrier)
                hold_expected(shape, output, run)
                assert digests in (None, run.digests), "the carriers wrote other rows"
                digests, peaks = run.digests, run.cost.peak_mib
                most = max(peaks.get("python", 0), peaks.get("worker", 0))
                peak = max(peak, most)
                say(f"  {name} {carrier}: {run.cost.seconds:.1f} s, {most:.0f} MiB")
                seconds = run.cost.processor_seconds
                rows.append(
                    (
                        name,
                        carrier,
                        shape.cells,
                        run.rows,
                        tidy(seconds),
                        tidy(run.cost.seconds),
                        round(most),
                        round(peaks["jvm"]) if "jvm" in peaks else None,
                    )
                )
                if carrier == "process":
                    figures.append(Figure(f"{name} / yardstick", tidy(seconds / unit)))
    figures.append(
        Figure(
            "most memory of a process that is no JVM, giants",
            round(peak),
            "MiB",
            target=MEMORY_LIMIT_MIB,
        )
    )
    columns = ("group", "carrier", "queues x epochs", "rows written", "processor s", "s",
               "worker or process, MiB", "JVM, MiB")  # fmt: skip
    return Report("Giants", ABOUT, tuple(figures), (Table(columns, tuple(rows)),))


if __name__ == "__main__":
    bench_main(giants, __doc__, epochs=100, spark=0)
