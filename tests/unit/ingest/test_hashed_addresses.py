"""Whether the addresses of a collection's clients are hashes."""

from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.hashed_addresses import looks_hashed
from rebalance_core.ingest.in_process import read_collection
from tests.recordings.tables import RECORDINGS, ingested_recording


def collected(tables: Any) -> dict[str, object]:
    (row,) = (row for row in tables["observed_facts"] if row["kind"] == "COLLECTED")
    details = row["details"]
    assert isinstance(details, dict)
    return details


@pytest.mark.parametrize("recording", RECORDINGS)
def test_no_recording_looks_hashed(recording: str) -> None:
    assert "hashed" not in collected(ingested_recording(recording).tables)


@pytest.mark.parametrize("redacted", [False, True])
def test_the_names_of_answers_show_it(tmp_path: Path, *, redacted: bool) -> None:
    """Names as programs write them that take no @ in one; `collect --redact` keeps their order."""
    (tmp_path / "mqadmin" / "1795233095244-consumerStatus-g").mkdir(parents=True)
    (tmp_path / "collection.toml").write_text(
        f'cluster = "C"\nadmin_time_zone = "UTC"\nredacted = {str(redacted).lower()}\n'
    )
    answers = tmp_path / "mqadmin" / "1795233095244-consumerStatus-g"
    for name in ("10.117.122.188_7_1", "10.71.254.20@7#2", "10.137.54.235%407%233"):
        (answers / f"{name}.txt").write_text("#Consumer Properties#\n")
    tables: Any = read_collection(open_collection(tmp_path)).tables
    assert ("hashed" in collected(tables)) is not redacted


@pytest.mark.parametrize(
    ("hosts", "networks", "hashed"),
    [
        (10, 9, True),
        (10, 8, True),
        (10, 7, False),
        (10, 2, False),
        (6, 5, True),
        (6, 4, False),
        (4, 3, False),
    ],
)
def test_some_of_many_hashes_share_a_network_by_chance(
    hosts: int, networks: int, *, hashed: bool
) -> None:
    addresses = [f"10.{number % networks}.{number}.7" for number in range(hosts)]
    assert looks_hashed(addresses) is hashed


def test_lists_of_members_show_it_where_no_client_was_asked(tmp_path: Path) -> None:
    (tmp_path / "mqadmin").mkdir()
    (tmp_path / "collection.toml").write_text('cluster = "C"\nadmin_time_zone = "UTC"\n')
    (tmp_path / "mqadmin" / "1795233095244-consumerConnection-g-a.txt").write_text(
        f"{'#ClientId':<36} {'#ClientAddr':<22} {'#Language':<10} #Version\n"
        f"{'1222a223ea05@1#2':<36} {'1222a223ea05:40001':<22} {'JAVA':<10} V5_3_3\n"
        "\nBelow is subscription:\n#Topic               #SubExpression\n"
        "T                    *\n\nConsumeType: CONSUME_PASSIVELY\nMessageModel: CLUSTERING\n"
        "ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET\n"
    )
    tables: Any = read_collection(open_collection(tmp_path)).tables
    assert "hashed" in collected(tables)
