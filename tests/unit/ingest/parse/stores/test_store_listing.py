import pytest

from rebalance_core.ingest.parse.config_stores import KINDS, parse_rocksdb_sign, parse_store_listing
from tests.unit.ingest.documents import codes, facts, parse_all

STOCK = "lock 4\nconfig/topics.json 3937\nconfig/consumerOffset.json 700\nrocksdbstore/CURRENT 16\n"


def forms(text: str) -> list[str]:
    (found,) = facts(parse_store_listing(text, "f"), "store_form")
    return list(found["forms"])


@pytest.mark.parametrize(
    ("sign", "form"),
    [
        ("config/topics/CURRENT 16", "ROCKSDB"),
        ("config/metadata/CURRENT", "SINGLE_ROCKSDB"),
        ("./config/rdb/CURRENT 16 1795332887", "ROCKSDB_V2"),
        ("/home/rocket mq/store/config/rdb/CURRENT 16", "ROCKSDB_V2"),
        ("config/subscriptionGroups/CURRENT 16", "JSON"),
        ("config/topics/CURRENT.bak 16", "JSON"),
        ("store/topics/CURRENT 16", "JSON"),
    ],
)
def test_the_sign_of_each_form(sign: str, form: str) -> None:
    assert forms(STOCK + sign + "\n") == [form]


def test_the_folder_that_every_store_has_is_no_sign() -> None:
    assert forms(STOCK) == ["JSON"]


def test_a_broker_that_was_changed_over_may_keep_its_old_form() -> None:
    assert forms("config/metadata/CURRENT 1\nconfig/topics/CURRENT 1\n") == [
        "ROCKSDB", "SINGLE_ROCKSDB",
    ]  # fmt: skip


def test_when_stores_were_written_if_the_listing_says_so() -> None:
    text = "config/topics.json 3937 1795332883\nconfig/consumerOffset.json 740\nconfig/x.json 1 9\n"
    (found,) = facts(parse_store_listing(text, "f"), "store_form")
    assert found["modified"] == [["topics.json", 1795332883000]]


@pytest.mark.parametrize("text", ["", "\n", "lock 4\nabort 0\n", '{"a": 1}'])
def test_no_listing_of_a_store(text: str) -> None:
    assert codes(parse_store_listing(text, "f")) == ["WRONG_FILE"]


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("brokers/b/config-1795332883191/topics/CURRENT", "ROCKSDB"),
        ("brokers/b/config/metadata/CURRENT", "SINGLE_ROCKSDB"),
        ("brokers/b/config/rdb/CURRENT", "ROCKSDB_V2"),
    ],
)
def test_a_copied_sign(path: str, form: str) -> None:
    (found,) = facts(parse_rocksdb_sign("MANIFEST-000019\n", path), "store_form")
    assert found == {"forms": [form], "modified": []}


def test_every_listing_collected_is_read() -> None:
    counts = parse_all(r"brokers/[^/]+/store-files", parse_store_listing, KINDS)
    assert counts == {"store_form": 20, "files": 20}
