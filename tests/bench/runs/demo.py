"""`python -m tests.bench.runs.demo`: small runs, where starting is most of the cost."""

import statistics
import tempfile
from pathlib import Path

from tests.bench.report import Figure, Report, Table, bench_main, say, tidy
from tests.bench.runs.jobs import JobRun, cost_of_python, empty_application, run_job
from tests.tree import TREE

INPUT = TREE / "rebalance_core/bundled/demo/join-leave/tables"
COLLECTION = TREE / "tests/recordings/data/nightly/collection"
FOUND = 3
"""The exit code of an audit that found something, as there is in that collection."""
HELP_SECONDS, PROCESS_SECONDS, TIMES_EMPTY = 0.3, 1.5, 2.0
ABOUT = """\
`rebalance simulate` runs on the recording of `make demo` (11 events). The empty application only
starts Spark, reads the same files and writes one row. The figures are medians of the rounds."""


def demo(rounds: int = 3) -> Report:
    """Run each so many times, in turns."""
    helps, processes, sparks, empties = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            helps.append(cost_of_python([str(TREE / "jobs/simulate.py"), "--help"]))
            processes.append(_simulate(Path(folder) / "process", "process"))
            sparks.append(_simulate(Path(folder) / "spark", "spark"))
            empties.append(empty_application(INPUT))
            assert processes[-1].digests == sparks[-1].digests, "the carriers wrote other rows"
            say(f"  round {number + 1} of {rounds}: Spark {sparks[-1].cost.seconds:.1f} s")
        audit = cost_of_python(
            [
                str(TREE / "jobs/audit.py"),
                "--collection",
                str(COLLECTION),
                "--output",
                f"{folder}/audit",
            ]
        )
    assert audit.code == FOUND, f"audit ended with {audit.code}: {audit.errors}"
    costs = {
        "`rebalance simulate --help`": helps,
        "the demo in a process": [run.cost for run in processes],
        "the demo on Spark": [run.cost for run in sparks],
        "an empty Spark application": empties,
        "`audit` of the collection `nightly` in a process": [audit],
    }
    middle = {
        name: statistics.median(c.processor_seconds for c in some) for name, some in costs.items()
    }
    help_, process, spark, empty = list(middle.values())[:4]
    return Report(
        "Small runs",
        ABOUT,
        figures=(
            Figure("`--help`", tidy(help_), "s", target=HELP_SECONDS),
            Figure("the demo in a process", tidy(process), "s", target=PROCESS_SECONDS),
            Figure(
                "the demo on Spark / an empty Spark application",
                tidy(spark / empty),
                target=TIMES_EMPTY,
            ),
        ),
        tables=(
            Table(
                ("run", "processor seconds", "seconds", "most memory of a process, MiB"),
                tuple(
                    (
                        name,
                        tidy(middle[name]),
                        tidy(statistics.median(c.seconds for c in some)),
                        round(max(max(c.peak_mib.values(), default=0) for c in some)),
                    )
                    for name, some in costs.items()
                ),
            ),
        ),
    )


def _simulate(output: Path, run_on: str) -> JobRun:
    return run_job("simulate", output, "--input", str(INPUT), "--run-on", run_on)


if __name__ == "__main__":
    bench_main(demo, __doc__, rounds=3)
