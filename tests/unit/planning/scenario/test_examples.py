"""The example scenarios: each reads, and edits recorded histories; the replay takes the result."""

from functools import lru_cache
from pathlib import Path

import pytest

from rebalance_core.planning.scenario.each import single_losses
from rebalance_core.planning.scenario.file import EDIT_KINDS, read_scenarios
from tests.recordings.tables import (
    Tables,
    derived_tables,
    ingested_recording,
    ledger_of,
)
from tests.tree import TREE
from tests.unit.planning.scenario.edited_history import edit_history, names_in

FILES = sorted((TREE / "rebalance_core/bundled/scenarios").glob("*.toml"))


PROXIED = "restart-proxies"
"""Needs proxies, which `grpc` has alone."""


@lru_cache
def tables_of(recording: str) -> Tables:
    if recording != "grpc":
        return derived_tables(recording)
    tables: Tables = ingested_recording(recording).tables
    return {
        name: [{key: value for key, value in row.items() if value is not None} for row in rows]
        for name, rows in tables.items()
    }


@lru_cache
def unedited(recording: str) -> Tables:
    return ledger_of(tables_of(recording))


def test_there_is_one_of_each_kind() -> None:
    kinds = {edit.KIND for scenario in read_scenarios(FILES) for edit in scenario.edits}
    assert kinds == EDIT_KINDS.keys()


@pytest.mark.parametrize(
    ("file", "recording"),
    [
        pytest.param(file, recording, id=f"{file.stem}-{recording}")
        for file in FILES
        for recording in (["grpc"] if file.stem == PROXIED else ["join-leave", "nightly"])
    ],
)
def test_it_applies_to_a_recording(file: Path, recording: str) -> None:
    (scenario,) = read_scenarios([file])
    assert scenario.name == file.stem
    tables = tables_of(recording)
    scenario = single_losses(scenario, names_in(tables["cluster_events"]), {})[0]
    done = edit_history(scenario, tables["cluster_events"], tables["consumer_groups"])
    events = [{name: v for name, v in row.items() if v is not None} for row in done.rows]
    ledger = ledger_of(tables | {"cluster_events": events})
    assert ledger["rejected"] == []
    assert len(done.rows) > len(tables["cluster_events"])
    orderly = any(row.get("ordered") for row in tables["consumer_groups"])
    begins_epochs = file.stem != "lose-master" or orderly  # rocketmq.md §15
    assert (len(ledger["epochs"]) > len(unedited(recording)["epochs"])) == begins_epochs
    assert not any("matches none" in warning for warning in done.warnings)
