"""`python -m tests.bench.exponents`: how the cost grows with groups, epochs, queues and members."""

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.engine.ledger_pass import bucket_pass
from rebalance_core.engine.options import SimulationOptions, engine_options
from rebalance_core.engine.replayed import REPLAYED
from rebalance_core.model.events import CONSUMER_JOIN
from tests.bench.histories import Shape, history, joining
from tests.bench.report import Figure, Report, Table, bench_main, say, tidy

LINEAR = 1.05
ASKED = SimulationOptions(include_retry_topics=False)
BASE = Shape(groups=1, members=100, topics=10, brokers=4, queues=25, epochs=10)
SERIES: dict[str, tuple[Shape, tuple[int, ...]]] = {
    "groups": (Shape(1, 8, 2, 2, 4, 10), (2_000, 4_000, 8_000, 16_000)),
    "epochs": (BASE, (160, 320, 640, 1_280)),
    "queues": (replace(BASE, epochs=20), (400, 800, 1_600, 3_200)),
    "members": (replace(BASE, queues=400), (4_000, 8_000, 16_000, 32_000)),
}
"""What grows, from where, and its values; ``queues``: of each topic on each broker."""
ONE_BY_ONE = (200, 400, 800, 1_600)
"""Members of a group of 64 queues; each comes in an epoch of its own."""
REPLAYED_FOR = {"of C++": ("language", "CPP"), "subscriptions in no row": ("subscriptions", None)}
"""Groups that the replay takes, as every member has this."""
REPLAYED_TARGET = 1.5
"""An epoch copies the members, so that many of them cost their square in the end."""
ABOUT = """\
The bench checks events in memory, routes them to their groups and computes the rows of all
tables. The exponent is the slope on logarithmic scales. In the series of members
that join one by one, each in an epoch of its own, the replay handles the group, which has 64
queues on two brokers."""


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
            rows.append(
                (name, value, shape.cells, tidy(seconds[-1]), tidy(1e9 * seconds[-1] / shape.cells))
            )
        slope = float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
        figures.append(Figure(f"exponent in {name}", tidy(slope), "exponent", target=LINEAR))
    for what, (column, value_of_all) in REPLAYED_FOR.items():
        name, seconds = f"members one by one, {what}", []
        for value in ONE_BY_ONE:
            members = max(2, int(value * share))
            events = joining(members, brokers=2, queues=32)
            field = events.schema.field(column)
            joins = pc.equal(events["event_type"], CONSUMER_JOIN)
            given = pa.scalar(value_of_all, field.type)
            events = events.set_column(
                events.schema.get_field_index(column),
                field,
                pc.if_else(joins, given, events[column]),
            )
            seconds.append(min(_replay_seconds(events, members) for _ in range(rounds)))
            say(f"  {name} {value:,}: {seconds[-1]:.2f} s")
            cells = 64 * members
            rows.append((name, value, cells, tidy(seconds[-1]), tidy(1e9 * seconds[-1] / cells)))
        slope = float(np.polyfit(np.log(ONE_BY_ONE), np.log(seconds), 1)[0])
        figures.append(
            Figure(f"exponent in {name}", tidy(slope), "exponent", target=REPLAYED_TARGET)
        )
    columns = ("what grows", "value", "queues x epochs", "processor s", "ns a queue and epoch")
    return Report("Growth", ABOUT, tuple(figures), (Table(columns, tuple(rows)),))


def _seconds(events: pa.Table, shape: Shape) -> float:
    owned = 0
    begin = time.process_time()
    checked = check_tables(input_tables_of({"cluster_events": events}))
    engine = engine_options(checked.tables, ASKED)
    for name, rows in bucket_pass(checked.tables, {}, engine, ASKED, names_encoded=False):
        if name == "ownership":
            to_epoch = rows["to_epoch"].fill_null(shape.epochs).to_numpy()
            owned += int((to_epoch - rows["from_epoch"].to_numpy()).sum())
    seconds = time.process_time() - begin
    assert owned == shape.cells, f"{owned:,} cells are owned, not {shape.cells:,}"
    return seconds


def _replay_seconds(events: pa.Table, members: int) -> float:
    counts: dict[str, int] = {}
    begin = time.process_time()
    checked = check_tables(input_tables_of({"cluster_events": events}))
    engine = engine_options(checked.tables, ASKED)
    for name, rows in bucket_pass(checked.tables, {}, engine, ASKED, names_encoded=False):
        counts[name] = counts.get(name, 0) + rows.num_rows
    seconds = time.process_time() - begin
    found = {name: counts.get(name) for name in ("epochs", "memberships", REPLAYED.name)}
    assert list(found.values()) == [members, members, 1], f"{found} rows of {members} members"
    return seconds


if __name__ == "__main__":
    bench_main(exponents, __doc__, rounds=2, share=1.0)
