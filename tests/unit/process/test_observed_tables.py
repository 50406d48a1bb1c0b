"""Observed tables that operators bring along: bad rows are rejected with their place."""

import json
from pathlib import Path

import pytest

from rebalance_core.contracts.rows import ObservedFactsRow, RejectedRow
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.model.errors import InputRefused
from rebalance_core.process.observed_tables import READ_TABLES, read_observed

NOW_MS = 1_700_000_000_000


GOOD = {
    "cluster": "c",
    "consumer_group": "g",
    "topic": "T",
    "broker_name": "b",
    "queue_id": 0,
    "client_id": "a",
    "observed_ms": NOW_MS,
    "source": "s",
}


def test_good_rows_bad_rows_and_tables_that_are_not_there(tmp_path: Path) -> None:
    bad = GOOD | {"queue_id": "x"}
    path = tmp_path / "observed_ownership.jsonl"
    path.write_text("\n".join(map(json.dumps, (GOOD, bad))) + "\n")
    facts = {
        "cluster": "c",
        "kind": "DUMP",
        "first_ms": NOW_MS,
        "last_ms": NOW_MS,
        "times": 1,
        "details": {"command": "clusterList"},
        "source": "s",
    }
    (tmp_path / "observed_facts.jsonl").write_text(json.dumps(facts) + "\n")
    observed = read_observed(str(tmp_path))
    assert tuple(observed.tables) == READ_TABLES
    assert rows_of_arrow(observed.tables["observed_ownership"]) == [GOOD]
    read: list[ObservedFactsRow] = rows_of_arrow(observed.tables["observed_facts"])
    assert read[0]["details"] == {"command": "clusterList"}
    assert observed.tables["findings"].num_rows == 0
    refused: list[RejectedRow] = rows_of_arrow(observed.rejected)
    (rejected,) = refused
    assert rejected["source"] is not None
    assert rejected["source"].endswith("observed_ownership.jsonl:2")
    assert rejected["issues"][0]["code"] == "BAD_TYPE"


def test_a_table_without_a_column_is_refused(tmp_path: Path) -> None:
    row = {name: value for name, value in GOOD.items() if name != "client_id"}
    (tmp_path / "observed_ownership.csv").write_text(
        ",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n"
    )
    with pytest.raises(InputRefused, match="client_id"):
        read_observed(str(tmp_path))
