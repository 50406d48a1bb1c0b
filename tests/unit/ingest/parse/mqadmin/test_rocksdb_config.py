import pytest

from rebalance_core.ingest.parse import config_stores, offset_stores
from rebalance_core.ingest.parse.mqadmin_export import ROCKSDB_KINDS, parse_rocksdb_config
from tests.unit.ingest.documents import codes, facts, kinds, parse_all

RPC = "Use [rpc mode] call broker to export to json file \nbroker export done.\n"
ALL = "Use [rpc mode] call all brokers in cluster to export to json file \nbroker export done.\n"
LOCAL = "Use [local mode] load rocksdb to print or export file \n"
OFFSETS = '{\n\t"offsetTable":{\n\t\t"T@g":{\n\t\t\t0:45,\n\t\t\t1:44\n\t\t}\n\t}\n}\n'
LINES = "type: offsetTable1, Key: %RETRY%g@g, Value: {0=0}\n2, Key: T@g, Value: {0=45, 1=44}\n"
FAILED = "Failed to initialize ConfigRocksDBStorage for consumer offsets.\n\n"


@pytest.mark.parametrize(("text", "whole_cluster"), [(RPC, False), (ALL, True)])
def test_an_export_by_rpc(text: str, whole_cluster: bool) -> None:
    (found,) = facts(parse_rocksdb_config(text, "f"), "rocksdb_export")
    assert found == {"done": True, "whole_cluster": whole_cluster}


def test_an_export_that_was_not_confirmed() -> None:
    text = RPC.partition("broker export")[0] + "java.lang.RuntimeException: no route\n\tat a.b(C)\n"
    found = parse_rocksdb_config(text, "f")
    assert kinds(found) == ["rocksdb_export", "admin_error"]
    assert facts(found, "rocksdb_export") == [{"done": False, "whole_cluster": False}]


@pytest.mark.parametrize("text", [LOCAL + OFFSETS, OFFSETS, LOCAL + LINES])
def test_offsets_that_local_mode_prints(text: str) -> None:
    found = facts(parse_rocksdb_config(text, "f"), "committed_offset")
    assert {"consumer_group": "g", "topic": "T", "queue_id": 1, "committed_offset": 44} in found
    assert len([one for one in found if one["topic"] == "T"]) == 2


@pytest.mark.parametrize("message", [FAILED, "RocksDB load error, path=/x/config/topics\n"])
def test_a_store_that_local_mode_cannot_open(message: str) -> None:
    (found,) = facts(parse_rocksdb_config(LOCAL + message, "f"), "rocksdb_unreadable")
    assert found == {"message": message.strip()}


def test_with_a_file_local_mode_prints_nothing_else() -> None:
    assert kinds(parse_rocksdb_config(LOCAL + "\n", "f")) == ["rocksdb_printed"]
    assert kinds(parse_rocksdb_config("", "f")) == ["no_output"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (LOCAL + '{"a": 1}', "WRONG_FILE"),
        (LOCAL + OFFSETS[:30], "UNPARSABLE_DOCUMENT"),
        (LOCAL + "3, Key: T@g, Value: {0=x}\n", "UNPARSABLE_LINE"),
        (LOCAL + "3, Key: T, Value: {0=1}\n", "BAD_ENTRY"),
        (LOCAL + "3, Key: T@g, Value: {0=99999999999999999999}\n", "BAD_NUMBER"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, code: str) -> None:
    assert codes(parse_rocksdb_config(text, "f")) == [code]


def test_every_output_collected_is_read() -> None:
    stores = (config_stores.TOPIC_KINDS, config_stores.GROUP_KINDS, offset_stores.COMMITTED_KINDS)
    known = {kind: text for of_store in (*stores, ROCKSDB_KINDS) for kind, text in of_store.items()}
    pattern = r"mqadmin/\d+-(rocksDBConfigToJson|exportMetadataInRocksDB|exported)-"
    counts = parse_all(pattern, parse_rocksdb_config, known)
    assert counts["rocksdb_export"] == 21
    assert counts["rocksdb_unreadable"] == 25
    assert counts["rocksdb_printed"] == 1
    assert counts["committed_offset"] == 4 * 8
    assert counts["files"] == 55
