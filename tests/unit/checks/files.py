"""Small input files, and the rows that are read in them."""

import gzip
import json
from pathlib import Path
from typing import Any

from rebalance_core.checks.table_reading import read_table
from rebalance_core.contracts import INPUT_TABLES

EVENT = {"cluster": "c", "event_ms": 1, "sequence": 1, "event_type": "BROKER_UP"}
BIG = 9007199254740993  # 2^53 + 1: lost by any way through a double


def line(**fields: object) -> str:
    return json.dumps(EVENT | fields)


def write(path: Path, *lines: str, end: str = "\n", start: str = "") -> Path:
    data = (start + "".join(text + end for text in lines)).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read_events(path: Path, input_format: str | None = None) -> list[dict[str, Any]]:
    rows, _ = read_table(INPUT_TABLES["cluster_events"], str(path), input_format)
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def issues_of(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(issue["code"], issue["message"]) for issue in row["_read_issues"]]
