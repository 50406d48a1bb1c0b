"""The read-metrics job: turn Prometheus answers into the tables that `autoscale` reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rebalance_core.checks.text_lines import BLOCK_BYTES
from rebalance_core.checks.unpacked_text import open_unpacked
from rebalance_core.contracts.scaling import (
    ARRIVALS,
    CAPACITY,
    RECORDED_SCALING,
    SCALING_INPUT_TABLES,
)
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.table_writer import Written
from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.autoscale.range_answer import merged, parse_answer
from rebalance_core.planning.autoscale.recorded_load import (
    COME,
    WANTED,
    RecordedLoad,
    load_of_metrics,
)
from rebalance_core.process.runtime import HERE, Runtime
from rebalance_core.storage.place import Location

WRITTEN = tuple(SCALING_INPUT_TABLES)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Meant:
    """What the labels of the series do not show.

    Attributes:
        threads: The threads of a member.
        cluster: The cluster of series that do not name theirs.
        deployments: The Deployment of each group, as ``NAME`` or ``NAMESPACE/NAME``.
    """

    threads: int
    cluster: str | None
    deployments: Mapping[str, str]


def read_metrics(
    files: Sequence[str],
    meant: Meant,
    *,
    warn: Callable[[str], object] | None = None,
    runtime: Runtime = HERE,
) -> RecordedLoad:
    """Combine answers of /api/v1/query_range.

    Memory: some 400 bytes per sample of all files, which the driver reads.

    Args:
        files: Paths that this process can reach; each has a part of the period or of the metrics.
        meant: What the labels do not show.
        warn: Receives a message about everything skipped.
        runtime: Not used, because one process reads the files.

    Raises:
        InputRefused: A file is not such an answer, its samples contradict one another, or no
            counter shows arriving messages.
    """
    answers = []
    for file in files:
        with open_unpacked(file) as opened:
            text = b"".join(iter(lambda: opened.read(BLOCK_BYTES), b""))
        answer = parse_answer(text, file, WANTED)
        if warn is not None:
            for warning in answer.warnings:
                warn(f"{file}: Prometheus warns: {warning}")
            if answer.others:
                names = sorted(answer.others)
                more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
                warn(f"{file}: not read: {', '.join(names[:_SHOWN])}{more}")
        answers.append(answer)
    load = load_of_metrics(
        merged(answers),
        cluster=meant.cluster,
        deployments=meant.deployments,
        threads=meant.threads,
    )
    if not load.arrivals:
        first = f"; {load.unknown[0]}" if load.unknown else ""
        raise InputRefused(
            f"no rate of a topic is known: {' or '.join(COME)} needs two samples of it{first}"
        )
    return load


def write_metrics(
    load: RecordedLoad,
    output: Location,
    *,
    before_writing: Callable[[], object] | None = None,
    runtime: Runtime = HERE,
) -> Written[dict[str, int]]:
    """Write ``arrivals``, ``capacity`` and ``recorded_scaling``.

    Args:
        load: From `read_metrics`.
        output: The folder for the tables (`place_of`); none of them may exist in it.
        before_writing: Called before the first table is written.
        runtime: Where the job runs.

    Raises:
        OutputExists: A table already exists in the folder.
    """
    if before_writing is not None:
        before_writing()
    rows: dict[str, Sequence[Mapping[str, object]]] = {
        ARRIVALS.name: load.arrivals,
        CAPACITY.name: load.capacity,
        RECORDED_SCALING.name: load.scaling,
    }
    with runtime.tables(output, WRITTEN) as tables:
        for name, of_table in rows.items():
            batch = batch_of_rows(SCALING_INPUT_TABLES[name], of_table)
            tables.add(name, pa.Table.from_batches([batch]))
        return Written(tables.finish(), {})
