"""From when the JSON stores beside a RocksDB are, by hand-made copies, exports and listings."""

from typing import Any

import pytest

from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.store_copies import BrokerStore, rocksdb_stores

END_MS = 1_000_000
TOPICS, OFFSETS = "topics_json", "consumer_offset_json"


def piece(kind: str, at_ms: int | None, source: str, place: str = "a", **values: Any) -> Any:
    return Evidence("CLUSTER", "", kind, at_ms, place, 0, source, values)


def listing(at_ms: int, *forms: str, **modified: int) -> Any:
    pairs = [[f"{name}.json", ms] for name, ms in modified.items()]
    return piece("store_form", at_ms, f"list-{at_ms}", forms=list(forms), modified=pairs)


def copy(at_ms: int | None, digest: str, version_ms: int | None = 1, store: str = OFFSETS) -> Any:
    source = f"{store}-{at_ms}"
    return piece("store_copied", at_ms, source, store=store, digest=digest, version_ms=version_ms)


def export(at_ms: int, argument: str = "a", done: bool = True, cluster: bool = False) -> Any:
    place = "" if cluster else "a"
    return piece(
        "rocksdb_export",
        at_ms,
        f"e-{at_ms}",
        place,
        done=done,
        whole_cluster=cluster,
        argument=argument,
    )


def stores(*pieces: Any) -> dict[str, BrokerStore]:
    return rocksdb_stores(pieces, END_MS, {"a": "a"})


def dates(*pieces: Any, form: str = "ROCKSDB") -> dict[str, int | None]:
    found = stores(listing(0, form), *pieces)["a"]
    return {name.rpartition("-")[2]: at_ms for name, at_ms in found.dates.items()}


def test_a_stock_broker_has_no_such_store() -> None:
    assert stores(copy(500, "x"), export(490)) == {}
    assert stores(listing(0, "JSON"), copy(500, "x")) == {}


def test_a_copy_right_after_an_export_is_current() -> None:
    assert dates(export(500_000), copy(502_000, "x")) == {"502000": 502_000}


def test_a_copy_long_after_an_export_is_as_of_the_export() -> None:
    assert dates(export(500_000), copy(600_000, "x")) == {"600000": 510_000}


def test_an_equal_copy_shows_nothing_new() -> None:
    found = dates(export(500_000), copy(502_000, "x"), copy(600_000, "x"), copy(None, "x"))
    assert found == {"502000": 502_000, "600000": 502_000, "None": 502_000}


def test_an_equal_copy_after_another_export_is_new() -> None:
    found = dates(export(1), copy(2_000, "x"), export(599_000), copy(600_000, "x"))
    assert found == {"2000": 2_000, "600000": 600_000}


def test_offsets_without_any_export_have_no_date_and_topics_that_of_their_change() -> None:
    assert dates(copy(600_000, "x", 400_000)) == {"600000": None}
    assert dates(copy(600_000, "x", 400_000, store=TOPICS)) == {"600000": 410_000}
    assert dates(copy(600_000, "x", None, store=TOPICS)) == {"600000": None}


def test_a_change_right_before_the_copy_dates_it() -> None:
    assert dates(copy(600_000, "x", 595_000)) == {"600000": 600_000}


def test_a_store_that_changed_after_the_export_was_exported_again() -> None:
    assert dates(export(500_000), copy(900_000, "x", 700_000)) == {"900000": None}


@pytest.mark.parametrize(
    ("one", "date"),
    [
        (export(599_000, "rpc-topics-a"), None),
        (export(599_000, "rpc-consumerOffsets-a"), 600_000),
        (export(599_000, done=False), None),
        (export(599_000, "cluster", cluster=True), 600_000),
    ],
)
def test_which_exports_count_for_offsets(one: Evidence, date: int | None) -> None:
    assert dates(one, copy(600_000, "x")) == {"600000": date}


@pytest.mark.parametrize("forms", [("ROCKSDB_V2",), ("ROCKSDB", "ROCKSDB_V2")])
def test_v2_states_that_it_exported_and_writes_nothing(forms: tuple[str, ...]) -> None:
    found = stores(listing(0, *forms), export(599_000), copy(600_000, "x"))["a"]
    assert found.date(OFFSETS) is None
    assert found.form == " or ".join(forms)


def test_a_listing_after_the_copy_shows_when_the_file_was_written() -> None:
    found = dates(copy(600_000, "x"), listing(600_500, "ROCKSDB", consumerOffset=333_000))
    assert found == {"600000": 334_000}


def test_a_listing_before_the_copy_or_of_a_newer_file_shows_nothing() -> None:
    assert dates(copy(600_000, "x"), listing(599_000, "ROCKSDB", consumerOffset=333_000)) == {
        "600000": None
    }
    assert dates(copy(600_000, "x"), listing(700_000, "ROCKSDB", consumerOffset=650_000)) == {
        "600000": None
    }


def test_what_a_command_printed_is_known_too() -> None:
    printed = piece("store_printed", 700_000, "p", store=OFFSETS)
    found = stores(listing(0, "ROCKSDB"), copy(600_000, "x"), printed)["a"]
    assert (found.date(OFFSETS), found.shown_ms(OFFSETS), found.shown_ms(TOPICS)) == (
        None,
        700_000,
        None,
    )


def test_the_newest_listing_decides_and_a_copied_sign_where_there_is_none() -> None:
    assert stores(listing(5, "ROCKSDB"), listing(9, "JSON")) == {}
    sign = piece("store_form", 7, "brokers/a/config/rdb/CURRENT", forms=["ROCKSDB_V2"], modified=[])
    assert stores(sign)["a"].forms == ("ROCKSDB_V2",)
    assert stores(sign, listing(1, "ROCKSDB"))["a"].forms == ("ROCKSDB",)
