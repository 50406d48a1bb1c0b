"""A redacted recording is audited as the recording: the same rows, but for the names."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from rebalance_core.contracts.run_names import INGESTED, STATE
from rebalance_core.ingest.redaction import Key, redact_collection
from tests.recordings.tables import DATA

READ_IDS = {"s-hash", "s-near"}
"""Groups of `strategies` whose owners follow from the text of client ids."""


def audited(collection: Path, output: Path, named: Callable[[str], str] = str) -> dict[str, Any]:
    """The exit code, and the rows of each table with other names."""
    code = main("audit", ["--collection", str(collection), "--output", str(output)])
    tables: dict[str, Any] = {"exit code": code}
    for folder in output.iterdir():
        if folder.is_dir() and folder.name not in (INGESTED, STATE):
            rows = pq.read_table(folder).to_pylist()
            texts = (json.dumps(row, sort_keys=True, default=str) for row in rows)
            tables[folder.name] = Counter(named(text) for text in texts)
    return tables


@pytest.mark.parametrize("recording", ["join-leave", "pathologies", "nightly", "grpc"])
def test_a_redacted_recording_has_the_same_owners_verdicts_and_findings(
    recording: str, tmp_path: Path
) -> None:
    collection = DATA / recording / "collection"
    redact_collection(collection, tmp_path / "redacted", tmp_path / "key.json")
    key = Key.read(tmp_path / "key.json")
    expected = audited(collection, tmp_path / "out")
    found = audited(tmp_path / "redacted", tmp_path / "redacted-out", key.restore)
    assert found.keys() == expected.keys()
    for table, rows in expected.items():
        assert found[table] == rows, table


def test_owners_that_follow_from_the_text_of_ids_are_unknown_not_wrong(tmp_path: Path) -> None:
    redact_collection(DATA / "strategies/collection", tmp_path / "redacted", tmp_path / "key.json")
    main("audit", ["--collection", f"{tmp_path}/redacted", "--output", f"{tmp_path}/out"])
    verdicts = {
        row["consumer_group"]: row["verdict"]
        for row in pq.read_table(tmp_path / "out/group_verdicts").to_pylist()
    }
    assert {group for group, one in verdicts.items() if one == "UNKNOWN"} == READ_IDS
    assert "DIFFERS" not in verdicts.values()
