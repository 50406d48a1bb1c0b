"""What mqadmin says of clusters, brokers and topics."""

import pytest

from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.parse.cluster_list import parse_cluster_list
from rebalance_core.ingest.parse.server_config import parse_server_config
from rebalance_core.ingest.parse.topic_list import parse_topic_list
from rebalance_core.ingest.parse.topic_route import parse_topic_route
from rebalance_core.ingest.parse.topic_status import parse_topic_status
from tests.unit.ingest.documents import codes, facts, kinds, parse_all
from tests.unit.ingest.parse.test_command_output import NO_BROKER, NOISE

V5 = """\
#Cluster Name           #Broker Name            #BID  #Addr                  #Version              #InTPS(LOAD)                   #OutTPS(LOAD)  #Timer(Progress)        #PCWait(ms)  #Hour         #SPACE    #ACTIVATED
DefaultCluster          broker-a                0     127.0.0.1:25020        V5_3_3                 0.00(0,0ms)               0.00(0,0ms|0,0ms)  0-0(0.0w, 0.0, 0.0)               0  0.07          0.1500          true
DefaultCluster          broker-a                1     127.0.0.1:25021                               0.00(,ms)                 0.00(,ms|,ms)      0-0(0.0w, 0.0, 0.0)                  0.00          0.0000         false
"""  # noqa: E501 - the columns are upstream's
V4 = """\
#Cluster Name     #Broker Name            #BID  #Addr                  #Version                #InTPS(LOAD)       #OutTPS(LOAD) #PCWait(ms) #Hour #SPACE
ProdCluster       mq-east                 0     127.0.0.1:28020        V4_9_7                   0.00(0,0ms)         0.00(0,0ms)          0 498675.64 0.1500
"""  # noqa: E501 - the columns are upstream's
MORE = """\
#Cluster Name     #Broker Name                       #InTotalYest  #OutTotalYest  #InTotalToday #OutTotalToday
ProdCluster       mq-east                                       1              2              3              4
"""  # noqa: E501 - the columns are upstream's


def test_brokers_of_5_x() -> None:
    master, slave = facts(parse_cluster_list(V5, "f"), "broker")
    assert master == {
        "cluster": "DefaultCluster",
        "broker_name": "broker-a",
        "broker_id": 0,
        "addr": "127.0.0.1:25020",
        "version": "V5_3_3",
        "activated": True,
    }
    assert (slave["broker_id"], slave["version"], slave["activated"]) == (1, None, False)


def test_brokers_of_4_9() -> None:
    [broker] = facts(parse_cluster_list(V4, "f"), "broker")
    assert (broker["cluster"], broker["addr"]) == ("ProdCluster", "127.0.0.1:28020")
    assert (broker["version"], broker["activated"]) == ("V4_9_7", None)


def test_names_wider_than_their_columns() -> None:
    text = V4.replace("ProdCluster       mq-east       ", f"{'C' * 40}  {'b' * 50}  "[:-8])
    text = V4.replace(f"{'ProdCluster':<16}", "C" * 40).replace(f"{'mq-east':<22}", "b" * 50)
    [broker] = facts(parse_cluster_list(text, "f"), "broker")
    assert (broker["cluster"], broker["broker_name"]) == ("C" * 40, "b" * 50)
    assert (broker["broker_id"], broker["version"]) == (0, "V4_9_7")


def test_totals() -> None:
    [row] = facts(parse_cluster_list(MORE, "f"), "broker_totals")
    assert row == {
        "cluster": "ProdCluster",
        "broker_name": "mq-east",
        "in_yesterday": 1,
        "out_yesterday": 2,
        "in_today": 3,
        "out_today": 4,
    }


def test_bad_rows_are_refused_by_name() -> None:
    assert codes(parse_cluster_list(V4.replace(" 0     127", " x     127"), "f")) == ["BAD_NUMBER"]
    assert codes(parse_cluster_list(V5.replace("false", "maybe"), "f")) == ["UNPARSABLE_LINE"]
    assert codes(parse_cluster_list(V4[:-30], "f")) == ["UNPARSABLE_LINE"]
    assert codes(parse_cluster_list("#Topic\n", "f")) == ["WRONG_FILE"]


@pytest.mark.parametrize("lost", range(1, 110, 12))
def test_what_is_left_of_a_header_is_none(lost: int) -> None:
    """Of clusterList -m, too: rows below it would be read by what it lacks."""
    for text in (MORE, V4):
        head, row = text.split("\n")[:2]
        for torn in (head[:-lost], head[lost:]):
            if "#Version" in torn and torn.startswith("#Cluster Name"):
                continue  # only the columns behind those that are read
            refused = codes(parse_cluster_list(f"{torn}\n{row}\n", "f"))
            assert refused in (["WRONG_FILE", "UNPARSABLE_LINE"], ["UNPARSABLE_LINE"] * 2)


def test_a_header_without_rows_was_cut() -> None:
    """A whole one has a row each of a broker and a queue; a half header has lost its columns."""
    for text, parse in ((V4, parse_cluster_list), (TOPIC_STATUS_TEXT, parse_topic_status)):
        header = text.partition("\n")[0]
        (refused,) = parse(f"{header}\n", "f")
        assert isinstance(refused, Unread)
        assert refused.message == "is cut off: it ends before its first row"
        assert codes(parse(header, "f")) == ["UNPARSABLE_LINE"]


def test_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-clusterList", parse_cluster_list)
    assert counts["broker"] > counts["files"] >= 1


# as GetBrokerConfigCommand.getAndPrint prints it: "%-50s=  %s"
ROWS = [("brokerName", "a"), ("msgTraceTopicName", "x=y"), ("slaveReadEnable", "true")]


def printed(head: str, *more: tuple[str, str]) -> str:
    return f"============{head}============\n" + "".join(
        f"{name:<50}=  {value}\n" for name, value in (*ROWS, *more)
    )


def test_a_broker_s_settings() -> None:
    text = printed("10.0.0.5:10911", ("brokerId", "1"), ("enableSlaveActingMaster", "false"))
    assert facts(parse_server_config(text, "f"), "server_settings") == [
        {
            "address": "10.0.0.5:10911",
            "settings": {
                "brokerName": "a",
                "slaveReadEnable": "true",
                "brokerId": "1",
                "enableSlaveActingMaster": "false",
            },
        }
    ]


def test_a_whole_cluster() -> None:
    text = "\n".join(
        (
            printed("Master: 1.1.1.1:1", ("brokerId", "0")),
            printed("My Master: 1.1.1.1:1=====Slave: 1.1.1.2:1", ("brokerId", "1")),
            "============Master: NO_MASTER============",
            printed("My Master: NO_MASTER=====Slave: 1.1.1.3:1", ("brokerId", "1")),
        )
    )
    found = facts(parse_server_config(text, "f"), "server_settings")
    assert [(one["address"], one["settings"]["brokerId"]) for one in found] == [
        ("1.1.1.1:1", "0"),
        ("1.1.1.2:1", "1"),
        ("1.1.1.3:1", "1"),
    ]


def test_a_name_server() -> None:
    text = f"============10.0.0.1:9876============\n{'supportActingMaster':<50}=  true\n"
    (found,) = facts(parse_server_config(text, "f"), "server_settings")
    assert found["settings"] == {"supportActingMaster": "true"}


def test_hours_that_are_no_number_were_cut() -> None:
    text = printed("1.1.1.1:1", ("fileReservedTime", "48"))
    (found,) = facts(parse_server_config(text, "f"), "server_settings")
    assert found["settings"]["fileReservedTime"] == "48"
    for damaged in ("4x", "-1", "9" * 40):
        text = printed("1.1.1.1:1", ("fileReservedTime", damaged))
        assert codes(parse_server_config(text, "f")) == ["BAD_NUMBER"]


def test_what_is_no_such_output() -> None:
    assert codes(parse_server_config("hello\n", "f")) == ["UNPARSABLE_LINE"]
    cut = printed("1.1.1.1:1") + "slaveRead"
    assert codes(parse_server_config(cut, "f")) == ["UNPARSABLE_LINE"]
    cut = printed("1.1.1.1:1") + f"{'brokerId':<50}=  1"  # of 12, perhaps
    assert codes(parse_server_config(cut, "f")) == ["UNPARSABLE_LINE"]
    assert codes(parse_server_config("============1.1.1", "f")) == ["UNPARSABLE_LINE"]
    none = "============1.1.1.1:1============\nBroker[1.1.1.1:1] has no config property!\n"
    assert codes(parse_server_config(none, "f")) == []


TOPIC_LIST_TEXT = f"""\
#Cluster Name         #Topic                                            #Consumer Group                                 
DefaultCluster        {"RMQ_SYS_TRANS_HALF_TOPIC":<64}  {"":<64}
DefaultCluster        {"payments":<64}  {"pay-service":<64}
"""  # noqa: E501, W291 - the columns and their padding are upstream's


def test_topics_and_who_consumes_them() -> None:
    system, payments = facts(parse_topic_list(TOPIC_LIST_TEXT, "f"), "topic")
    assert payments == {
        "cluster": "DefaultCluster",
        "topic": "payments",
        "topic_truncated": False,
        "consumer_group": "pay-service",
        "consumer_group_truncated": False,
    }
    assert (system["topic"], system["consumer_group"]) == ("RMQ_SYS_TRANS_HALF_TOPIC", None)


def test_topics_alone() -> None:
    topics = facts(parse_topic_list("payments\n%RETRY%pay-service\n", "f"), "topic")
    assert [row["topic"] for row in topics] == ["payments", "%RETRY%pay-service"]
    assert topics[0]["cluster"] is None


def test_names_that_fill_their_columns_may_be_cut() -> None:
    text = TOPIC_LIST_TEXT.replace(f"{'payments':<64}", "t" * 64)
    assert facts(parse_topic_list(text, "f"), "topic")[1]["topic_truncated"] is True


def test_what_is_no_list_is_refused() -> None:
    assert codes(parse_topic_list("#Broker Name\n", "f")) == ["WRONG_FILE"]
    assert codes(parse_topic_list("two words\n", "f")) == ["UNPARSABLE_LINE"]
    assert codes(parse_topic_list("payments\norde", "f")) == ["UNPARSABLE_LINE"]


def test_topic_list_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-topicList", parse_topic_list)
    assert counts["topic"] > counts["files"] >= 1


TOPIC_ROUTE_TEXT = """\
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
    results = parse_topic_route(TOPIC_ROUTE_TEXT, "f")
    assert facts(results, "route_queues") == [QUEUES]
    assert facts(results, "route_broker") == [
        {
            "cluster": "ProdCluster",
            "broker_name": "mq-north",
            "addresses": {"0": "127.0.0.1:28030", "1": "127.0.0.1:28031"},
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
    results = parse_topic_route(TOPIC_ROUTE_TEXT.replace("{", "{" + extra, 1), "f")
    assert facts(results, "order_topic_conf") == [{"conf": "mq-north:5"}]
    [mapping] = facts(results, "queue_mapping")
    assert mapping == {"broker_name": "mq-north", "mapping": {"epoch": 1}}


def test_noise_and_crlf_change_nothing() -> None:
    assert parse_topic_route(
        NOISE + TOPIC_ROUTE_TEXT.replace("\n", "\r\n"), "f"
    ) == parse_topic_route(TOPIC_ROUTE_TEXT, "f")


def test_what_is_no_route_is_refused() -> None:
    assert codes(parse_topic_route(TOPIC_ROUTE_TEXT[:-20], "f")) == ["UNPARSABLE_DOCUMENT"]
    assert codes(parse_topic_route("{}", "f")) == ["WRONG_FILE"]
    assert codes(parse_topic_route(TOPIC_ROUTE_TEXT.replace(":5,", ":-5,"), "f")) == ["BAD_NUMBER"]
    assert codes(parse_topic_route(TOPIC_ROUTE_TEXT.replace('"127.0.0.1:28030"', "7"), "f")) == [
        "BAD_ENTRY"
    ]
    assert codes(parse_topic_route(LIST.replace("5          3 ", "5            "), "f")) == [
        "UNPARSABLE_LINE"
    ]
    assert codes(parse_topic_route("#Topic\n", "f")) == ["WRONG_FILE"]


def test_a_topic_that_does_not_exist() -> None:
    assert kinds(parse_topic_route(NO_BROKER, "f")) == ["admin_error"]
    assert kinds(parse_topic_route("", "f")) == ["no_output"]


def test_topic_route_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-topicRoute", parse_topic_route)
    assert counts["route_queues"] >= counts["files"] >= 1


TOPIC_STATUS_TEXT = """\
#Broker Name                      #QID  #Min Offset           #Max Offset             #Last Updated
broker-a                          0     0                     12                      2026-11-21 03:50:24,104
broker-c                          3     5                     5                       

Topic Put TPS: 0.0
"""  # noqa: E501, W291 - the columns and their padding are upstream's


def test_queues_and_speed() -> None:
    results = parse_topic_status(TOPIC_STATUS_TEXT, "f")
    assert facts(results, "queue_offsets") == [
        {
            "broker_name": "broker-a",
            "broker_name_truncated": False,
            "queue_id": 0,
            "min_offset": 0,
            "max_offset": 12,
            "last_updated_ms": 1795233024104,
        },
        {
            "broker_name": "broker-c",
            "broker_name_truncated": False,
            "queue_id": 3,
            "min_offset": 5,
            "max_offset": 5,
            "last_updated_ms": None,
        },
    ]
    assert facts(results, "topic_put_tps") == [{"tps": 0.0}]
    assert results[0].source == "f:2"


def test_padding_that_an_editor_took_away_crlf_and_noise() -> None:
    stripped = "\r\n".join(line.rstrip() for line in TOPIC_STATUS_TEXT.split("\n"))
    expected = facts(parse_topic_status(TOPIC_STATUS_TEXT, "f"), "queue_offsets")
    assert facts(parse_topic_status(NOISE + stripped, "f"), "queue_offsets") == expected


def test_a_name_that_fills_its_column_may_be_cut() -> None:
    text = TOPIC_STATUS_TEXT.replace(f"{'broker-a':<32}", "b" * 32)
    assert facts(parse_topic_status(text, "f"), "queue_offsets")[0]["broker_name_truncated"] is True


def test_an_offset_cut_in_two_is_not_taken() -> None:
    results = parse_topic_status(TOPIC_STATUS_TEXT[: TOPIC_STATUS_TEXT.index("12   ") + 1], "f")
    assert codes(results) == ["UNPARSABLE_LINE"]
    assert facts(results, "queue_offsets") == []


def test_topic_status_bad_rows_are_refused_by_name() -> None:
    assert codes(parse_topic_status(TOPIC_STATUS_TEXT.replace(" 12 ", " -  "), "f")) == [
        "BAD_NUMBER"
    ]
    assert codes(parse_topic_status(TOPIC_STATUS_TEXT.replace(",104", ""), "f")) == []
    assert codes(parse_topic_status(TOPIC_STATUS_TEXT.replace("24,104", "2"), "f")) == ["BAD_TIME"]
    assert codes(parse_topic_status("#Topic  #Broker Name\n", "f")) == ["WRONG_FILE"]


def test_topic_status_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-topicStatus", parse_topic_status)
    assert counts["queue_offsets"] > counts["files"] >= 1
