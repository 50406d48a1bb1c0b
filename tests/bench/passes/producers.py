"""`python -m tests.bench.passes.producers`: the cost of a simulated producer at ten times the pace.

Processor time of one process for some producers under both settings and generations, at a pace
and at ten and a hundred times that pace. Beside it the plain loop over every send, at the lowest
pace. The ratio is what counts: time at ten and at a hundred times the pace over that at the pace.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from rebalance_core.planning.producer_model import read_model
from rebalance_core.producers.model import Outage, ProducerModel, Variant, variants_of
from rebalance_core.producers.producer_run import run_producer
from tests.bench.report import MORE, Figure, Report, Table, bench_main, say, tidy
from tests.tree import TREE
from tests.unit.producers.models import walk

CONF = TREE / "rebalance_core/bundled/producers"
ABOUT = """\
One producer sends for the 600 s of each bundled model, with each setting and generation of
clients. The plain loop simulates every send; unit tests check that both give the same result."""
PACES = (20, 200, 2000)


def models() -> dict[str, ProducerModel]:
    """The bundled examples, and an outage that is refused at once."""
    outage = read_model(CONF / "outage.toml")
    (silent,) = (one for one in outage.disturbances if isinstance(one, Outage))
    refused = replace(outage, disturbances=(replace(silent, answer="connect"),))
    return {
        "brown-out": read_model(CONF / "brown-out.toml"),
        "outage": outage,
        "refused": refused,
    }


def at_pace(model: ProducerModel, pace: float) -> ProducerModel:
    """The same, faster or slower."""
    return replace(model, groups=tuple(replace(g, sends_per_second=pace) for g in model.groups))


def seconds(
    model: ProducerModel, producers: int, run: Callable[[ProducerModel, int, Variant], object]
) -> float:
    """Processor time for each producer under each variant."""
    variants = variants_of(model)[model.groups[0].name]
    begin = time.process_time()
    for number in range(producers):
        for variant in variants:
            run(model, number, variant)
    return (time.process_time() - begin) / (producers * len(variants))


def jumped(model: ProducerModel, number: int, variant: Variant) -> object:
    """As the job does it."""
    return run_producer(model, model.groups[0], number, variant, choices=True)


def walked(model: ProducerModel, number: int, variant: Variant) -> object:
    """Send by send."""
    return walk(model, variant, number)


def producers(each: int = 10) -> Report:
    """Measure every model.

    Args:
        each: Producers of a model.
    """
    rows: list[tuple[str | float, ...]] = []
    figures: list[Figure] = []
    for name, model in models().items():
        costs = [1000 * seconds(at_pace(model, pace), each, jumped) for pace in PACES]
        loop = 1000 * seconds(at_pace(model, PACES[0]), 1, walked)
        say(f"  {name}: {costs[0]:.2f} ms, plain loop {loop:.1f} ms")
        rows.append((name, *map(tidy, costs), tidy(loop)))
        figures += [
            Figure(f"producer, {name}: 2,000 sends/s / 20 sends/s", tidy(costs[-1] / costs[0])),
            Figure(f"producer, {name}: plain loop / ours", tidy(loop / costs[0]), better=MORE),
        ]
    columns = (
        "model",
        *(f"{pace:,} sends/s, ms" for pace in PACES),
        f"plain loop, {PACES[0]} sends/s, ms",
    )
    return Report("Producers", ABOUT, tuple(figures), (Table(columns, tuple(rows)),))


if __name__ == "__main__":
    bench_main(producers, __doc__, each=10)
