"""`python -m tests.bench.exponents`: how the cost grows with groups, epochs, queues and members."""

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.process.simulate import ledger_rows
from tests.bench.histories import Shape, history
from tests.bench.report import Figure, Report, Table, bench_main, say, tidy

LINEAR = 1.05
BASE = Shape(groups=1, members=100, topics=10, brokers=4, queues=25, epochs=10)
SERIES: dict[str, tuple[Shape, tuple[int, ...]]] = {
    "groups": (Shape(1, 8, 2, 2, 4, 10), (2_000, 4_000, 8_000, 16_000)),
    "epochs": (BASE, (160, 320, 640, 1_280)),
    "queues": (replace(BASE, epochs=20), (400, 800, 1_600, 3_200)),
    "members": (replace(BASE, queues=400), (4_000, 8_000, 16_000, 32_000)),
}
"""What grows, from where, and its values; ``queues``: of each topic on each broker."""
ABOUT = """\
Check, fan-out and the rows of all tables from events in memory. The exponent is the slope on
logarithmic scales."""


def exponents(rounds: int = 2, share: float = 1.0) -> Report:
    """Fit one exponent a series.

    Args:
        rounds: Runs of each point.
        share: Of the sizes that are run; small for a trial.
    """
    figures, rows = [], []
    for name, (base, values) in SERIES.items():
        seconds = []
        for value in values:
            shape = replace(base, **{name: max(2, int(value * share))})
            events = history(shape)
            seconds.append(min(_seconds(events, shape) for _ in range(rounds)))
            say(f"  {name} {value:,}: {seconds[-1]:.2f} s")
            rows.append((name, value, shape.cells, tidy(seconds[-1]),
                         tidy(1e9 * seconds[-1] / shape.cells)))  # fmt: skip
        slope = float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
        figures.append(Figure(f"exponent in {name}", tidy(slope), "exponent", target=LINEAR))
    columns = ("what grows", "value", "queues x epochs", "processor s", "ns a queue and epoch")
    return Report("Growth", ABOUT, tuple(figures), (Table(columns, tuple(rows)),))


def _seconds(events: pa.Table, shape: Shape) -> float:
    owned = 0
    begin = time.process_time()
    checked = check_tables(input_tables_of({"cluster_events": events}))
    for name, rows in ledger_rows(checked, SimulationOptions(include_retry_topics=False)):
        if name == "ownership":
            to_epoch = rows["to_epoch"].fill_null(shape.epochs).to_numpy()
            owned += int((to_epoch - rows["from_epoch"].to_numpy()).sum())
    seconds = time.process_time() - begin
    assert owned == shape.cells, f"{owned:,} cells are owned, not {shape.cells:,}"
    return seconds


if __name__ == "__main__":
    bench_main(exponents, __doc__, rounds=2, share=1.0)
