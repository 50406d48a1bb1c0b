"""Nothing hangs on how a recording's cluster, brokers, topics, groups and hosts are called.

Each name gets another one of its length, as tables of mqadmin have columns, and of its place in
RocketMQ's order, as the order of clients and brokers decides who owns what.
"""

import json
import re
from pathlib import Path
from typing import Any

from tests.recordings.rewritten import Files, files_of, ingested
from tests.recordings.tables import Tables

RECORDING = "join-leave"
NAMES = {
    "order-service": "0%a|B_c-retry",
    "OrderTopic": "9|T%pic_-x",
    "broker-a": "A.rack@1",
    "broker-b": "b.RACK%1",
    "10.0.0.10": "[::1:0:1]",
    "10.0.0.1": "[::2:01]",
    "10.0.0.21": "[::3:0:1]",
    "10.0.0.2": "[::4:01]",
    "127.0.0.1": "[::f:0:1]",
    "DefaultCluster": "Prod.Cluster|1",
}
NAME = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, NAMES))})(?![\w])")


def renamed(text: str) -> str:
    return NAME.sub(lambda found: NAMES[found[0]], text)


def renamed_files(files: Files) -> Files:
    return {renamed(name): renamed(content.decode()).encode() for name, content in files.items()}


def unnumbered(table: list[dict[str, Any]]) -> list[str]:
    """Rows as text; events of one instant are numbered by their names."""
    rows = ({k: v for k, v in row.items() if k != "sequence"} for row in table)
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_names_are_names(tmp_path: Path) -> None:
    assert all(len(old) == len(new) for old, new in NAMES.items())
    recorded: Tables = ingested(files_of(RECORDING), tmp_path / "as recorded")
    found = ingested(renamed_files(files_of(RECORDING)), tmp_path / "renamed")
    assert recorded["observed_members"]
    for name, table in recorded.items():
        assert unnumbered(found[name]) == sorted(map(renamed, unnumbered(table))), name
