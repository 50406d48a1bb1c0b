from rebalance_core.ingest.fact import Fact
from rebalance_core.ingest.parse.mqadmin_export import EXPORT_KINDS, parse_export
from tests.unit.ingest.documents import codes, facts, kinds, parse_all
from tests.unit.ingest.parse.mqadmin.test_command_output import NO_BROKER

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
    assert {result.at_ms for result in results if isinstance(result, Fact)} == {1795233095838}


def test_metadata_of_one_broker() -> None:
    results = parse_export(ONE_BROKER, "f")
    assert facts(results, "exported_topic")[0]["summed"] is False
    assert facts(results, "data_version")[0]["counter"] == 9


def test_configs() -> None:
    results = parse_export(CONFIGS, "f")
    [broker] = facts(results, "broker_config")
    assert broker["properties"] == {"autoCreateTopicEnable": "false"}
    assert facts(results, "cluster_scale")[0]["master_brokers"] == 3


def test_standard_output_says_where_to() -> None:
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
    counts = parse_all(r"mqadmin/\d+-(exportMetrics|metrics)", parse_export, EXPORT_KINDS)
    assert counts["broker_metrics"] >= counts["exported_to"] >= 1
