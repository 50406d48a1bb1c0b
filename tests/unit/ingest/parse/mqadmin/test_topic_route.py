from rebalance_core.ingest.parse.mqadmin_topics import TOPIC_ROUTE_KINDS, parse_topic_route
from tests.unit.ingest.documents import codes, facts, kinds, parse_all
from tests.unit.ingest.parse.mqadmin.test_command_output import NO_BROKER, NOISE

TEXT = """\
{
	"brokerDatas":[
		{
			"brokerAddrs":{0:"127.0.0.1:28030",1:"127.0.0.1:28031"
			},
			"brokerName":"mq-north",
			"cluster":"ProdCluster"
		}
	],
	"filterServerTable":{},
	"queueDatas":[
		{
			"brokerName":"mq-north",
			"perm":4,
			"readQueueNums":5,
			"topicSysFlag":0,
			"writeQueueNums":3
		}
	]
}
"""
LIST = """\
#ClusterName                                  #BrokerName                      #BrokerAddrs                                       #ReadQueue #WriteQueue #Perm
ProdCluster                                   mq-north                         {0=127.0.0.1:28030, 1=127.0.0.1:28031}             5          3           4    
ProdCluster                                   mq east                          {0=10.0.0.1:10911, 1=10.0.0.2:10911, 2=10.0.0.3:10911} 1          1           6    
--------------------------------------------------------------------------------------------------------------------------------------------------------------
Total:                                        2                                                                                   6          4                
"""  # noqa: E501, W291 - the columns and their padding are upstream's
QUEUES = {"broker_name": "mq-north", "read_queue_nums": 5, "write_queue_nums": 3, "perm": 4}


def test_the_document() -> None:
    results = parse_topic_route(TEXT, "f")
    assert facts(results, "route_queues") == [QUEUES]
    assert facts(results, "route_broker") == [
        {
            "cluster": "ProdCluster",
            "broker_name": "mq-north",
            "addresses": {0: "127.0.0.1:28030", 1: "127.0.0.1:28031"},
        }
    ]


def test_the_table() -> None:
    results = parse_topic_route(LIST, "f")
    north, east = facts(results, "route_queues")
    assert north == QUEUES
    assert (east["broker_name"], east["perm"]) == ("mq east", 6)
    assert results[0].source == "f:2"
    assert codes(results) == []


def test_ordered_and_static_topics() -> None:
    extra = '"orderTopicConf":"mq-north:5","topicQueueMappingByBroker":{"mq-north":{"epoch":1}},'
    results = parse_topic_route(TEXT.replace("{", "{" + extra, 1), "f")
    assert facts(results, "order_topic_conf") == [{"conf": "mq-north:5"}]
    [mapping] = facts(results, "queue_mapping")
    assert mapping == {"broker_name": "mq-north", "mapping": {"epoch": 1}}


def test_noise_and_crlf_change_nothing() -> None:
    assert parse_topic_route(NOISE + TEXT.replace("\n", "\r\n"), "f") == parse_topic_route(
        TEXT, "f"
    )


def test_what_is_no_route_is_refused() -> None:
    assert codes(parse_topic_route(TEXT[:-20], "f")) == ["UNPARSABLE_DOCUMENT"]
    assert codes(parse_topic_route("{}", "f")) == ["WRONG_FILE"]
    assert codes(parse_topic_route(TEXT.replace(":5,", ":-5,"), "f")) == ["BAD_NUMBER"]
    assert codes(parse_topic_route(TEXT.replace('"127.0.0.1:28030"', "7"), "f")) == ["BAD_ENTRY"]
    assert codes(parse_topic_route(LIST.replace("5          3 ", "5            "), "f")) == [
        "UNPARSABLE_LINE"
    ]
    assert codes(parse_topic_route("#Topic\n", "f")) == ["WRONG_FILE"]


def test_a_topic_that_does_not_exist() -> None:
    assert kinds(parse_topic_route(NO_BROKER, "f")) == ["admin_error"]
    assert kinds(parse_topic_route("", "f")) == ["no_output"]


def test_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-topicRoute", parse_topic_route, TOPIC_ROUTE_KINDS)
    assert counts["route_queues"] >= counts["files"] >= 1
