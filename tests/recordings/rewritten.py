"""Collections of recordings as files in memory, to rewrite them in ways that change no fact."""

import gzip
from pathlib import Path
from typing import Any

from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.tables import DATA, Tables

Files = dict[str, bytes]
STATED = ("cluster_events", "consumer_groups", "queue_offsets", "committed_offsets", "findings",
          "observed_members", "observed_ownership")  # fmt: skip


def files_of(recording: str) -> Files:
    """The files of its collection by name, unpacked."""
    root = DATA / recording / "collection"
    files = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            name, content = path.relative_to(root).as_posix(), path.read_bytes()
            packed = name.endswith(".gz")
            files[name.removesuffix(".gz")] = gzip.decompress(content) if packed else content
    return files


def written(files: Files, folder: Path) -> Path:
    """The folder with the files in it; packed where their names say so."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder


def ingested(files: Files, folder: Path) -> Tables:
    """What `ingest` makes of the files, without where each row comes from."""
    tables: Any = ingest_collection(written(files, folder)).tables
    assert tables["rejected"] == []
    return {name: sorted(map(_unsourced, tables[name]), key=str) for name in STATED}


def _unsourced(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "source"}
