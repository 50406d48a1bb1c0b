"""`python -m tests.bench.runs.restart`: a plan of a rolling restart of a fleet, in one command."""

import tempfile
from pathlib import Path

from tests.bench.report import Figure, Report, bench_main, tidy
from tests.bench.runs.jobs import run_job
from tests.bench.runs.yardstick import yardstick

ABOUT = """\
`rebalance plan --scenario rolling-restart` runs on a generated day of 20 groups (seed 3) with 20
futures of each. The bench asserts that `plan_summary` contains both variants of every group."""
GROUPS = 20


def restart(rounds: int = 3) -> Report:
    """Run it; the fastest round counts.

    Args:
        rounds: How often.
    """
    unit = yardstick()
    with tempfile.TemporaryDirectory() as folder:
        fleet, out = Path(folder) / "fleet", Path(folder) / "out"
        run_job("generate", fleet, "--groups", str(GROUPS), "--days", "1", "--seed", "3")
        runs = [
            run_job("plan", out, "--input", str(fleet), "--scenario", "rolling-restart")
            for _ in range(rounds)
        ]
    assert {run.record["outputs"]["plan_summary"]["rows"] for run in runs} == {2 * GROUPS}
    seconds = min(run.cost.processor_seconds for run in runs)
    return Report(
        "A plan of a restart",
        ABOUT,
        (
            Figure(f"plan of a restart of {GROUPS} groups", tidy(seconds), "s", target=10.0),
            Figure(f"plan of a restart of {GROUPS} groups / yardstick", tidy(seconds / unit)),
        ),
        (),
    )


if __name__ == "__main__":
    bench_main(restart, __doc__, rounds=3)
