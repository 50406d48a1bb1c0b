"""exportConfigs, exportMetadata and rocksDBConfigToJson."""

import pytest

from rebalance_core.ingest.fact import Stated
from rebalance_core.ingest.parse import config_stores, offset_stores
from rebalance_core.ingest.parse.mqadmin_export import parse_export, parse_rocksdb_config
from tests.unit.ingest.documents import codes, facts, kinds, parse_all
from tests.unit.ingest.parse.test_command_output import NO_BROKER

METRICS = """{
	"totalData":{"totalOneDayNum":{"normalOneDayInNum":0},"totalTps":{"totalNormalInTps":0.0}},
	"evaluateReport":{
		"broker-b":{
			"runtimeVersion":{
				"rocketmqVersion":"V5_3_3",
				"clientInfo":["JAVA%V5_3_3","CPP%V4_9_7"]
			},
			"runtimeQuota":{"topicSize":5,"groupSize":10},
			"runtimeEnv":{"cpuNum":"2"}
		}
	}
}"""
METADATA = """{"exportTime":1795233095838,"subscriptionGroupTable":{"crm":{"retryQueueNums":3}},
"topicConfigTable":{"orders":{"perm":6,"readQueueNums":24,"writeQueueNums":24}}}"""
ONE_BROKER = """{"dataVersion":{"counter":9,"timestamp":1795232871085},
"topicConfigTable":{"orders":{"perm":6,"readQueueNums":8,"writeQueueNums":8}}}"""
CONFIGS = """{"brokerConfigs":{"broker-a":{"autoCreateTopicEnable":"false"}},
"clusterScale":{"namesrvSize":1,"masterBrokerSize":3,"slaveBrokerSize":0}}"""


def test_metrics() -> None:
    results = parse_export(METRICS, "f")
    [broker] = facts(results, "broker_metrics")
    assert broker == {
        "broker_name": "broker-b",
        "admin_version": "V5_3_3",
        "clients": (("CPP", "V4_9_7"), ("JAVA", "V5_3_3")),
        "quota": {"topicSize": 5, "groupSize": 10},
    }
    assert len(facts(results, "cluster_metrics")) == 1


def test_metadata_of_a_cluster_holds_sums() -> None:
    results = parse_export(METADATA, "f")
    [topic] = facts(results, "exported_topic")
    assert (topic["read_queue_nums"], topic["summed"]) == (24, True)
    [group] = facts(results, "exported_subscription_group")
    assert (group["retry_queue_nums"], group["summed"]) == (3, True)
    assert {result.at_ms for result in results if isinstance(result, Stated)} == {1795233095838}


def test_metadata_of_one_broker() -> None:
    results = parse_export(ONE_BROKER, "f")
    assert facts(results, "exported_topic")[0]["summed"] is False
    assert facts(results, "data_version")[0]["counter"] == 9


def test_configs() -> None:
    results = parse_export(CONFIGS, "f")
    [broker] = facts(results, "broker_config")
    assert broker["properties"] == {"autoCreateTopicEnable": "false"}
    assert facts(results, "cluster_scale")[0]["master_brokers"] == 3


def test_standard_output_states_where_to() -> None:
    results = parse_export("export /opt/rocketmq/exp/metrics.json success", "f")
    assert facts(results, "exported_to") == [{"path": "/opt/rocketmq/exp/metrics.json"}]
    assert kinds(parse_export(NO_BROKER, "f")) == ["admin_error"]


def test_what_is_no_export_is_refused() -> None:
    assert codes(parse_export("{}", "f")) == ["WRONG_FILE"]
    assert codes(parse_export("exported", "f")) == ["UNPARSABLE_LINE"]
    assert codes(parse_export(METADATA[:50], "f")) == ["UNPARSABLE_DOCUMENT"]
    assert codes(parse_export(METRICS.replace("CPP%", "CPP"), "f")) == ["BAD_ENTRY"]
    assert codes(parse_export(CONFIGS.replace('{"autoCreateTopicEnable":"false"}', "1"), "f")) == [
        "BAD_ENTRY"
    ]


def test_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-(exportMetrics|metrics)", parse_export)
    assert counts["broker_metrics"] >= counts["exported_to"] >= 1


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
    pattern = r"mqadmin/\d+-(rocksDBConfigToJson|exportMetadataInRocksDB|exported)-"
    stores = (config_stores.parse_topics_json, config_stores.parse_subscription_group_json)
    offsets = offset_stores.parse_consumer_offset_json
    counts = parse_all(pattern, parse_rocksdb_config, *stores, offsets)
    assert counts["rocksdb_export"] == 21
    assert counts["rocksdb_unreadable"] == 25
    assert counts["rocksdb_printed"] == 1
    assert counts["committed_offset"] == 4 * 8
    assert counts["files"] == 55
