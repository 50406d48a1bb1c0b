"""``--fit``: the latencies of earlier ``ingest``, ``audit`` or ``night`` runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rebalance_core.cli.run.in_process import Backend
from rebalance_core.cli.run.night_folders import AUDIT_FOLDER, NIGHT_RECORD
from rebalance_core.contracts.observed import LATENCIES
from rebalance_core.contracts.table import RowT, rows_of_arrow
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.run_folder import refuse_changed
from rebalance_core.storage.store_answers import refusal

if TYPE_CHECKING:
    from rebalance_core.cli.run.output_folder import OutputFolder
    from rebalance_core.contracts.rows import LatenciesRow
    from rebalance_core.timing.fit import Fit

INGESTED = "ingested"
"""The folder in an audit's output with the tables of its collection."""
_READ = ("kind", "ms")


def read_fit(backend: Backend, locations: Sequence[str]) -> Fit | None:
    """Return the delays of the runs in some folders, or None without folders.

    Raises:
        InputRefused: a folder cannot be read, or its ``latencies`` are missing or have changed
            since its run.
    """
    if not locations:
        return None
    from rebalance_core.timing.fit import fit_of

    return fit_of([latency_rows(backend, location) for location in locations])


def latency_rows(backend: Backend, location: str) -> list[LatenciesRow]:
    """Return the kinds and milliseconds of the ``latencies`` of a run."""
    option = f"--fit {location}"
    try:
        folder = ingested_folder(backend.folder(location), option, (LATENCIES.name,))
        return observed_rows(backend, folder, LATENCIES.name, _READ)
    except OSError as error:
        raise refusal(error, f"{option} cannot be read", InputRefused) from error
    except (pa.ArrowException, ValueError) as error:
        raise InputRefused(f"{option} cannot be read: {error}") from error


def ingested_folder(folder: OutputFolder, option: str, tables: Sequence[str]) -> OutputFolder:
    """Return the folder with the facts from files in an `ingest`, `audit` or `night` run.

    Args:
        folder: the output of the run.
        option: the option that named it, for the message.
        tables: the tables that it must have, unchanged since its run.

    Raises:
        InputRefused: a table is missing or has changed.
    """
    if NIGHT_RECORD in folder.names():
        folder /= AUDIT_FOLDER
    if INGESTED in folder.names():
        folder /= INGESTED
    missing = [table for table in tables if table not in folder.names()]
    if missing:
        raise InputRefused(
            f"{option}: no {missing[0]} in it; name the output of ingest, audit or night"
        )
    refuse_changed(folder, tables)
    return folder


def observed_rows(
    backend: Backend, folder: OutputFolder, table: str, columns: Sequence[str] | None = None
) -> list[RowT]:
    """Return the rows of a table that a run wrote, with all columns unless some are named."""
    read = backend.runtime.reader(backend.location(folder.url))
    return rows_of_arrow(read(table, None, columns))


def fit_lines(fit: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each kind: the basis of its delays, and how much the nights differ.

    Args:
        fit: `timing.fit.KindFit.facts` of each kind.
    """
    for kind in fit:
        figures = f"median {kind['median_ms']:,.0f} ms, 99 % {kind['p99_ms']:,.0f} ms"
        if kind["nights"] > 1 and kind["lowest_ms"] is not None:
            low, high = kind["lowest_ms"], kind["highest_ms"]
            figures += f"; medians by night {low:,.0f} to {high:,.0f} ms"
        yield f"{kind['basis']}: {figures}" if kind["fitted"] else kind["basis"]
