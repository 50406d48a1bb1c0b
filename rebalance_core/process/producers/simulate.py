"""A model of producers simulated in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.producers import PRODUCER_WRITTEN
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.engine.written import ProducersWritten
from rebalance_core.model.versions import Version
from rebalance_core.producers.simulation.answers import (
    PRODUCERS_PER_PART,
    TALLIES,
    added_up,
    answer_tables,
    simulated_parts,
)
from rebalance_core.producers.simulation.model import BOTH_GENERATIONS, ProducerModel, variants_of
from rebalance_core.storage.locations import Location

Progress = Callable[[int, int], object]


def simulate_producers(
    model: ProducerModel, versions: Sequence[Version] = BOTH_GENERATIONS
) -> dict[str, pa.Table]:
    """The tables of a model, by name (`contracts.producers.PRODUCER_WRITTEN`), in memory.

    ``publish_choices``, ``broker_isolations`` and ``queue_rates`` are of the groups as the model
    has them; ``producer_outcomes`` and ``producer_shares`` compare every version, without and with
    fault tolerance. Cost: changes of state, not sends. Same model, same rows.

    Args:
        model: `planning.producer_model.file.read_model`, or made by hand.
        versions: To compare with the groups' own.
    """
    tables: dict[str, list[pa.Table]] = {}
    for part in _parts(model, versions, None):
        for name, rows in part.items():
            tables.setdefault(name, []).append(rows)
    made = {name: pa.concat_tables(parts) for name, parts in tables.items()}
    answers = answer_tables(model, variants_of(model, versions), made.pop(TALLIES.name))
    return {name: (made | answers)[name] for name in PRODUCER_WRITTEN}


def simulate_and_write(
    model: ProducerModel,
    versions: Sequence[Version],
    output: Location,
    *,
    before_writing: Callable[[], object] | None = None,
    progress: Progress | None = None,
) -> ProducersWritten:
    """Simulate a model and write its tables. Memory: the rows of some producers.

    Args:
        model: What to simulate.
        versions: As of `simulate_producers`.
        output: A folder (`place_of`), which gets the tables; none of them may be there.
        before_writing: Called before the first table is written.
        progress: Told how many producers are done, of how many.

    Raises:
        OutputExists: A table is in the folder already.
    """
    if before_writing is not None:
        before_writing()
    tallies = TALLIES.arrow_schema().empty_table()
    with TableWriters(output, (*PRODUCER_WRITTEN, REJECTED.name)) as writers:
        for part in _parts(model, versions, progress):
            tallies = added_up(pa.concat_tables([tallies, part.pop(TALLIES.name)]))
            _write(writers, part)
        answers = answer_tables(model, variants_of(model, versions), tallies)
        _write(writers, answers)
    return ProducersWritten(writers.written(), answers)


def _parts(
    model: ProducerModel, versions: Sequence[Version], progress: Progress | None
) -> Iterator[dict[str, pa.Table]]:
    variants = variants_of(model, versions)
    for begin in range(0, model.producers, PRODUCERS_PER_PART):
        numbers = range(begin, min(begin + PRODUCERS_PER_PART, model.producers))
        yield simulated_parts(model, variants, numbers)
        if progress is not None:
            progress(numbers.stop, model.producers)


def _write(writers: TableWriters, tables: dict[str, pa.Table]) -> None:
    for name, rows in tables.items():
        for batch in rows.to_batches():
            writers.write(name, batch)
