"""accessMessageInMemoryMaxRatio of a broker: whether a queue's first message is in memory."""

import shutil
from pathlib import Path

import pytest

from rebalance_core.ingest.in_process import ingest_collection
from tests.tree import TREE

CASE = TREE / "tests/cases/data/exporter-79-broadcast-lag"
"""One broker of 4.9.2, whose queues have messages."""


def head_cached(folder: Path, ratio: str, version: str = "V4_9_2") -> set[bool | None]:
    """What ingest writes of queues with messages where the broker starts with this ratio."""
    shutil.copytree(CASE, folder)
    log = folder / "brokers/broker-a/broker.log"
    role = "brokerRole=ASYNC_MASTER"
    line = next(one for one in log.read_text().splitlines() if one.endswith(role))
    more = line.replace(role, f"accessMessageInMemoryMaxRatio={ratio}")
    log.write_text(log.read_text().replace(line, f"{line}\n{more}"))
    for dump in folder.glob("mqadmin/*clusterList*"):
        dump.write_text(dump.read_text().replace("V4_9_2", version))
    rows = ingest_collection(folder).tables["queue_offsets"]
    return {row.get("head_cached") for row in rows if row["max_offset"] > 0}


@pytest.mark.parametrize(
    ("ratio", "version", "cached"),
    [("0", "V4_9_2", False), ("40", "V4_9_2", None), ("05", "V4_9_2", None), ("0", "V5_3_3", None)],
)
def test_a_broker_that_takes_no_message_for_one_in_memory(
    ratio: str, version: str, cached: bool | None, tmp_path: Path
) -> None:
    """From 5.1.0 on a broker asks for the page, whatever the ratio."""
    assert head_cached(tmp_path / "c", ratio, version) == {cached}
