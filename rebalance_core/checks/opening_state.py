"""The opening state of a run: the rows that an earlier run used, before those of its own input.

A state ends just after its last event. Its rows go through the checks with the others, marked in
``_source``: a row that the input repeats is used once, an event of the input before the state's end
is late unless the state has it, and the input's settings of a group apply. Members in the state
keep the settings that their group had then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import Issue
from rebalance_core.checks.digest import TableDigest
from rebalance_core.checks.input_tables import ArrowTables, read_input_tables
from rebalance_core.contracts import EVIDENCE_TABLES, INPUT_TABLES, Table
from rebalance_core.contracts.opening_state import EVIDENCE
from rebalance_core.contracts.run_names import RUN_NAME, STATE, STATE_FOLDERS
from rebalance_core.contracts.table import SOURCE
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.events import CONSUMER_JOIN
from rebalance_core.storage.place import place_of
from rebalance_core.storage.run_folder import Folder, counted_rows, find_run, read_run
from rebalance_core.storage.store_answers import refusal

if TYPE_CHECKING:
    from rebalance_core.contracts.run_record import StoredRun
from rebalance_core.version import LIBRARY_VERSION

OF_STATE = "opening state"
"""The ``_source`` of the state's rows; readers set ``file:line`` instead."""
_EVENTS = "cluster_events"
_GROUPS = "consumer_groups"
"""Its rows apply to a whole run."""
GROUP_SETTINGS = {
    "strategy": "strategy",
    "subscriptions": "subscriptions",
    "version": "client_version",
    "message_model": "message_model",
    "consume_from_where": "consume_from_where",
    "rebalance_mode": "rebalance_mode",
    "wait_interval_ms": "wait_interval_ms",
    "min_interval_ms": "min_interval_ms",
    "poll_name_server_interval_ms": "poll_name_server_interval_ms",
    "heartbeat_broker_interval_ms": "heartbeat_broker_interval_ms",
    "persist_consumer_offset_interval_ms": "persist_consumer_offset_interval_ms",
}
"""Columns of a CONSUMER_JOIN that take the group's value if null, and the group's columns."""


def state_folder(run: Folder) -> str:
    """Return the folder in which a finished run keeps the input tables that it used.

    Raises:
        InputRefused: The run is not finished, has another contract version, kept no events, or its
            tables have changed since it wrote them.
    """
    folders: list[Folder] = [run, *(run / name for name in STATE_FOLDERS)]
    try:
        job = read_run(run)["job"]
        for folder in folders:
            if _EVENTS in folder.names():
                record = _record(folder)
                if record is not None:
                    counted_rows(folder, record, INPUT_TABLES)
                return folder.url
    except InputRefused as error:
        raise InputRefused(f"--state: {error}") from error
    raise InputRefused(
        f"--state {run.url}: the {job} run has no cluster_events; name a run of simulate, ingest "
        "or audit"
    )


def _record(folder: Folder) -> StoredRun | None:
    """Return the record in a folder of tables, or None if it has none."""
    try:
        return find_run(folder)
    except OSError as error:
        raise refusal(error, f"{folder.url} cannot be read", InputRefused) from error


def evidence_folder(run: Folder) -> Folder:
    """Return the folder in which a finished run kept the facts from its collection's files.

    Raises:
        InputRefused: The run is not finished, has another contract version, kept none, or its
            tables have changed since it wrote them.
    """
    folder: Folder = run / STATE
    try:
        job = read_run(run)["job"]
        if EVIDENCE.name in folder.names():
            counted_rows(folder, read_run(folder), EVIDENCE_TABLES)
            return folder
    except InputRefused as error:
        raise InputRefused(f"--state: {error}") from error
    raise InputRefused(
        f"--state {run.url}: the {job} run has no evidence; name a run of ingest, or an audit "
        "with --collection and without --redact-clients"
    )


def with_state(inputs: ArrowTables, folder: str) -> ArrowTables:
    """Return the tables of an input, preceded by the rows of a state.

    Args:
        inputs: The run's tables.
        folder: As for `state_folder`.

    Raises:
        InputRefused: The tables cannot be read, have changed since the run wrote them, or have no
            events.
    """
    state = dict(read_input_tables(folder).tables)
    checked_queue_nums = _checked_queue_nums(state, place_of(folder))
    if _GROUPS in state:
        state[_EVENTS] = _with_settings(state[_EVENTS], state[_GROUPS])
    merged = {name: _marked(rows) for name, rows in state.items()}
    for name, rows in inputs.tables.items():
        merged[name] = pa.concat_tables([merged[name], rows]) if name in merged else rows
    end_ms = end_of(pc.max(state[_EVENTS]["event_ms"]).as_py(), folder)
    return replace(
        inputs, tables=merged, state_end_ms=end_ms, state_checked_queue_nums=checked_queue_nums
    )


def _checked_queue_nums(state: Mapping[str, pa.Table], folder: Folder) -> int:
    """Return the limit on queues per topic with which the run that left the state checked its rows,
    or 0 if it did not check them as this version does.

    A simulation keeps only rows that it checked and used, one per key.

    Raises:
        InputRefused: A table has changed since the run wrote it.
    """
    record = _record(folder)
    if record is None or record["job"] != "simulate":
        return 0
    if record["library_version"] != LIBRARY_VERSION:
        return 0
    recorded = record.get("outputs", {})
    for name, rows in state.items():
        digest = TableDigest(INPUT_TABLES[name])
        digest.add(rows)
        if name not in recorded or digest.result.digest != recorded[name]["digest"]:
            raise InputRefused(
                f"--state: {folder.url}: {name} is not as the run wrote it ({RUN_NAME}); copy the "
                "folder again, or run the job again"
            )
    return record.get("config", {}).get("limits", {}).get("max_queue_nums", 0)


def _with_settings(events: pa.Table, groups: pa.Table) -> pa.Table:
    """Return the events, with the group's settings on each join that has none."""
    place = pc.index_in(_group_keys(events), _group_keys(groups))
    joins = pc.equal(events["event_type"], CONSUMER_JOIN)
    place = pc.if_else(joins, place, pa.scalar(None, place.type))
    for name, of_group in GROUP_SETTINGS.items():
        settings = groups[of_group].combine_chunks().take(place)
        column = pc.coalesce(events[name], settings)
        events = events.set_column(events.schema.get_field_index(name), name, column)
    return events


def _group_keys(rows: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(rows["cluster"], rows["consumer_group"], "\0")


def _marked(rows: pa.Table) -> pa.Table:
    """Return conformed rows as rows of the opening state."""
    place = rows.schema.get_field_index(SOURCE)
    return rows.set_column(place, SOURCE, pa.repeat(OF_STATE, len(rows)))


def end_of(last_ms: int | None, folder: str) -> int:
    """Return the end of a state, just after its last event.

    Raises:
        InputRefused: It has no events.
    """
    if last_ms is None:
        raise InputRefused(f"--state: {folder} has no event")
    return last_ms + 1


def is_of_state(rows: pa.Table, source: str = SOURCE) -> np.ndarray:
    """Return which rows belong to the opening state; ``source`` is the column with their source."""
    return np.asarray(pc.fill_null(pc.equal(rows[source], OF_STATE), False))


def superseded(table: Table, rows: pa.Table) -> np.ndarray:
    """Return which rows of the state the input replaces, namely settings that it states again."""
    if table.name != _GROUPS:
        return np.zeros(len(rows), bool)
    of_state = is_of_state(rows)
    stated = set(_keys(table, rows.filter(pa.array(~of_state))))
    repeated = np.fromiter((key in stated for key in _keys(table, rows)), bool, len(rows))
    replaced: np.ndarray = of_state & repeated
    return replaced


def _keys(table: Table, rows: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(rows[name].to_pylist() for name in table.key), strict=True))


def late_events(table: Table, rows: pa.Table, unused: np.ndarray, end_ms: int | None) -> Issue:
    """Return the issue of events that precede the end of the state but are missing from it.

    Args:
        table: The contract.
        rows: Conformed rows.
        unused: Numbers of rows that repeat a used row.
        end_ms: The end of the state; None without one.
    """
    late = np.zeros(0, bool)
    if table.name == _EVENTS and end_ms is not None:
        late = np.asarray(pc.fill_null(pc.less(rows["event_ms"], end_ms), False))
        late &= ~is_of_state(rows)
        late[unused] = False
    message = f"the opening state ends at {end_ms} but does not contain this earlier event"
    numbers = np.flatnonzero(late)
    return Issue(numbers, "BEFORE_STATE", [message] * len(numbers))
