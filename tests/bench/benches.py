"""The list of benches: what `make bench` and `make bench-full` run, one after the other.

A new bench is a module whose `bench_main` prints a `Report`, and a line here.
"""

from dataclasses import dataclass

QUICK, FULL = "quick", "full"
LISTS = (QUICK, FULL)

Arguments = tuple[str, ...]


@dataclass(frozen=True)
class Bench:
    """One program.

    Attributes:
        name: As on the command line and in the results.
        module: What ``python -m`` runs.
        quick: Its options in `make bench`, which takes 10 minutes on two idle cores in all.
        full: Its options in `make bench-full`; None: as `quick`.
    """

    name: str
    module: str
    quick: Arguments = ()
    full: Arguments | None = None

    def arguments(self, listed: str) -> Arguments:
        """The options in a list."""
        return self.full if listed == FULL and self.full is not None else self.quick


BENCHES = (
    Bench("small-runs", "tests.bench.runs.demo", ("--rounds", "2"), ("--rounds", "5")),
    Bench("day", "tests.bench.runs.day", ("--groups", "1000"), ("--groups", "10000")),
    Bench(
        "fleets",
        "tests.bench.runs.fleets",
        ("--most-rows", "4000000", "--spark-from", "300000", "--spark-to", "500000"),
        ("--most-rows", "50000000", "--spark-from", "2000000", "--spark-to", "500000000"),
    ),
    Bench(
        "giants",
        "tests.bench.runs.giants",
        ("--epochs", "100"),
        ("--epochs", "2000", "--spark", "1"),
    ),
    Bench("offsets", "tests.bench.runs.offsets", ("--commits", "400000", "--spark", "0"), ()),
    Bench("growth", "tests.bench.exponents", ("--rounds", "2"), ("--rounds", "3")),
    Bench(
        "assignors",
        "tests.bench.assignors.compare",
        ("--cap", "10", "--enough", "0.5"),
        ("--cap", "60", "--enough", "2", "--everything", "1"),
    ),
    Bench(
        "passes",
        "tests.bench.passes.engine",
        ("--groups", "500", "--rounds", "2"),
        ("--groups", "10000", "--rounds", "3"),
    ),
    Bench(
        "plans",
        "tests.bench.passes.sweep",
        ("--groups", "30", "--count", "4"),
        ("--groups", "100", "--count", "20"),
    ),
    Bench("steps", "tests.bench.passes.steps", ("--rounds", "2"), ("--groups", "300")),
    Bench("functions", "tests.bench.passes.functions", ("--rounds", "3"), ("--rounds", "9")),
    Bench("producers", "tests.bench.passes.producers"),
    Bench(
        "futures",
        "tests.bench.passes.timing",
        ("--seeds", "200"),
        ("--seeds", "1000"),
    ),
    Bench("restart", "tests.bench.runs.restart", ("--rounds", "1"), ("--rounds", "3")),
    Bench(
        "propagation",
        "tests.bench.runs.propagation",
        ("--groups", "12", "--seeds", "300"),
        ("--groups", "1000"),
    ),
    Bench("rollouts", "tests.bench.passes.rollouts"),
    Bench("log-lines", "tests.bench.passes.log_lines", ("--megabytes", "16"),
          ("--megabytes", "64")),
    Bench(
        "ingest",
        "tests.bench.runs.logs",
        ("--megabytes", "100", "--giant-lines", "20000"),
        ("--megabytes", "4000", "--giant-lines", "1000000"),
    ),
)  # fmt: skip
