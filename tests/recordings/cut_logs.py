"""Collections whose logs end early, though dumps were taken later."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.parse.log_lines import SECOND_CHARACTERS, SERVER_ZONE, Clock
from rebalance_core.ingest.parse.zones import zone_named
from tests.recordings.tables import DATA


def cut_collection(
    name: str, at_ms: int, folder: Path, is_cut: Callable[[str], bool] = lambda log: True
) -> Path:
    """A copy of a recording's collection without the lines of logs from that moment on.

    Args:
        name: of the recording.
        at_ms: epoch ms.
        folder: where the copy goes.
        is_cut: of a log's path in the collection: whether it ends early.
    """
    copy = Path(shutil.copytree(DATA / name / "collection", folder / name))
    settings = open_collection(copy).settings
    for log in sorted(copy.rglob("*.log*")):
        path = log.relative_to(copy).as_posix()
        if is_cut(path):
            zone = settings.zone_of(path)
            cut_log(log, at_ms, Clock(zone_named(zone)) if zone else Clock(SERVER_ZONE))
    return copy


def cut_log(log: Path, at_ms: int, local: Clock) -> None:
    """Remove the lines of a log from that moment on; ``local`` is its client's clock."""
    packed = log.suffix == ".gz"
    data = gzip.decompress(log.read_bytes()) if packed else log.read_bytes()
    server, kept = Clock(SERVER_ZONE), list[bytes]()
    for line in data.splitlines(keepends=True):
        text = line[: SECOND_CHARACTERS + 1].decode("utf-8", "replace")
        clock = local if text.endswith(",") else server  # before 5.1 clients write their own zone
        second = clock.second_ms(text[:SECOND_CHARACTERS]) if text[:1].isdigit() else None
        if second is not None and second >= at_ms:
            break
        kept.append(line)
    left = b"".join(kept)
    log.write_bytes(gzip.compress(left) if packed else left)
