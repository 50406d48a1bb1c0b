"""`python -m tests.bench.producers`: the cost of a simulated producer at ten times the pace.

Processor time of one process for some producers under both settings and generations, at a pace
and at ten and a hundred times that pace. Beside it the plain loop over every send, at the lowest
pace. `ratios` is what counts: time at ten and at a hundred times the pace over that at the pace.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rebalance_core.planning.producer_model.file import read_model
from rebalance_core.producers.simulation.model import Outage, ProducerModel, Variant
from rebalance_core.producers.simulation.producer_run import run_producer
from rebalance_core.producers.simulation.variants import variants_of
from tests.bench.result import arguments_of, say, show
from tests.unit.producers.models import walk

CONF = Path(__file__).resolve().parents[2] / "conf/producers"
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


def measured(name: str, model: ProducerModel, producers: int) -> dict[str, Any]:
    """Milliseconds of one producer by pace, and the ratios."""
    costs = [seconds(at_pace(model, pace), producers, jumped) for pace in PACES]
    loop = seconds(at_pace(model, PACES[0]), 1, walked)
    made = {
        "milliseconds": {f"{p}/s": round(c * 1000, 3) for p, c in zip(PACES, costs, strict=True)},
        "ratios": [round(cost / costs[0], 2) for cost in costs[1:]],
        "plain_loop_milliseconds": round(loop * 1000, 3),
    }
    say(f"{name}: {made}")
    return made


def main() -> None:
    """Measure every model and print the result."""
    arguments = arguments_of(__doc__, producers=10)
    result = {name: measured(name, model, arguments.producers) for name, model in models().items()}
    show(result, arguments.out)


if __name__ == "__main__":
    main()
