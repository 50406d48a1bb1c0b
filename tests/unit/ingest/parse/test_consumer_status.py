from zoneinfo import ZoneInfo

import pytest

from rebalance_core.ingest.fact import Fact
from rebalance_core.ingest.parse.consumer_running_info import parse_running_info
from rebalance_core.ingest.parse.consumer_status import client_of_output, parse_consumer_status
from tests.unit.ingest.documents import codes, facts, kinds, parse_all
from tests.unit.ingest.parse.test_command_output import NO_BROKER

LIST = """\
#Index     #ClientId                                #Version             #ConsumerRunningInfoFile
1          172.17.0.3@notify                        V5_3_3               1795233079427/172.17.0.3@notify
2          172.17.0.2@notify                        V5_3_3               1795233079427/172.17.0.2@notify


Same subscription in the same group of consumer

Rebalance OK
172.17.0.2@notify MessageQueue [topic=orders, brokerName=broker-a, queueId=3] can't lock for a while, 61000ms
172.17.0.2@notify MessageQueue [topic=orders, brokerName=broker-a, queueId=2] unlock 3 times, still failed
172.17.0.3@notify MessageQueue [topic=orders, brokerName=broker-a, queueId=1] can't consume for a while, maybe blocked, 70000ms
"""  # noqa: E501 - the columns are upstream's
NOT_COMPARED = """\
org.apache.rocketmq.tools.command.SubCommandException: ConsumerStatusSubCommand command failed
\tat org.apache.rocketmq.tools.command.consumer.ConsumerStatusSubCommand.execute(ConsumerStatusSubCommand.java:149)
Caused by: java.lang.NumberFormatException: For input string: "null"
\tat java.lang.Long.parseLong(Long.java:589)
"""  # noqa: E501 - the lines are upstream's
DIFFERENT = """\
#Index     #ClientId                                #Version             #ConsumerRunningInfoFile
1          10.0.2.31@32259#3183467568487            V5_3_3               1795233079119/10.0.2.31@32259#3183467568487


WARN: Different subscription in the same group of consumer!!!"""  # noqa: E501 - the columns are upstream's
CLIENT = """\
#Consumer Properties#
consumeTimestamp                        : 20261121031729
pullThresholdForTopic                   : -1
pullThresholdForQueue                   : 1000
PROP_NAMESERVER_ADDR                    : 127.0.0.1:25000;
PROP_CONSUMEORDERLY                     : true
clientIP                                : 10.0.2.11
PROP_CONSUMER_START_TIMESTAMP           : 1795232849317
PROP_CONSUME_TYPE                       : CONSUME_PASSIVELY
pullThresholdSizeForQueue               : 100
messageModel                            : CLUSTERING
allocateMessageQueueStrategy            : org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@4659aa62
consumerGroup                           : stock-sync
instanceName                            : 31549#3178133647322
consumeFromWhere                        : CONSUME_FROM_FIRST_OFFSET
enableHeartbeatChannelEventListener     : true
PROP_CLIENT_VERSION                     : V5_3_3
clientRebalance                         : true


#Consumer Subscription#
001 Topic: %RETRY%stock-sync                        ClassFilter: false    SubExpression: *
002 Topic: stock                                    ClassFilter: false    SubExpression: TagA || TagB


#Consumer Offset#
#Topic                                                            #Broker Name                      #QID  #Consumer Offset    
stock                             broker-a                          0     12                  


#Consumer MQ Detail#
#Topic                                                            #Broker Name                      #QID  #ProcessQueueInfo   
stock                                                             broker-a                          0     ProcessQueueInfo [commitOffset=12, cachedMsgMinOffset=0, cachedMsgMaxOffset=0, cachedMsgCount=0, cachedMsgSizeInMiB=0, transactionMsgMinOffset=0, transactionMsgMaxOffset=0, transactionMsgCount=0, locked=true, tryUnlockTimes=0, lastLockTimestamp=20261121035050422, droped=false, lastPullTimestamp=20261121035100778, lastConsumeTimestamp=20261121035024106]


#Consumer Pop Detail#
#Topic                            #Broker Name                      #QID  #ProcessQueueInfo   
stock                             broker-b                          1     PopProcessQueueInfo [waitAckCount:2, droped:false, lastPopTimestamp:1795233060778]


#Consumer RT&TPS#
#Topic                                                                  #Pull RT      #Pull TPS    #Consume RT #ConsumeOK TPS #ConsumeFailed TPS  #ConsumeFailedMsgsInHour
stock                                    4054.33           0.20           0.00           0.20               0.00                         0


#User Consume Info#
deployment                              : blue
"""  # noqa: E501, W291 - the columns and their padding are upstream's
JSTACK = """

#Consumer jstack#
TID: 1 STATE: WAITING main
                org.apache.rocketmq.Thing.run(Thing.java:3)
"""


def test_the_list_of_clients() -> None:
    results = parse_consumer_status(LIST, "f")
    assert results[0] == Fact(
        "listed_client",
        1795233079427,
        {"client_id": "172.17.0.3@notify", "version": "V5_3_3"},
        "f:2",
    )
    assert facts(results, "same_subscription") == [{"same": True}]
    stuck = [
        (row["queue_id"], row["trouble"], row["count"]) for row in facts(results, "stuck_queue")
    ]
    assert stuck == [(3, "lock", 61000), (2, "unlock", 3), (1, "consume", 70000)]
    assert codes(results) == []


@pytest.mark.parametrize("stack", ["", NOT_COMPARED])
def test_a_list_without_a_comparison_of_subscriptions_is_whole(stack: str) -> None:
    """Clients of other languages leave out properties that analyzeSubscription needs."""
    rows = LIST[: LIST.index("Same subscription")].rstrip() + "\n"
    warning = LIST.splitlines()[-1] + "\n"
    for text in (rows, rows + warning):
        results = parse_consumer_status(text + stack, "f")
        assert len(facts(results, "listed_client")) == 2
        assert facts(results, "same_subscription") == []
        assert len(facts(results, "admin_error")) == bool(stack)
        assert codes(results) == []


def test_a_verdict_ends_the_output_without_a_line_end() -> None:
    assert facts(parse_consumer_status(DIFFERENT, "f"), "same_subscription") == [{"same": False}]


@pytest.mark.parametrize("client_id", ["c" * 200, "10.0.0.1@my app", "a/b@c", "a@1795233079427/x"])
def test_client_ids_of_any_width(client_id: str) -> None:
    row = f"{3:<10} {client_id:<40} {'V5_3_3':<20} 1795233079427/{client_id}"
    text = LIST.splitlines()[0] + f"\n{row}\n"
    assert facts(parse_consumer_status(text, "f"), "listed_client")[0]["client_id"] == client_id


def test_one_client() -> None:
    results = parse_consumer_status(CLIENT, "f")
    [client] = facts(results, "client")
    assert client["consumer_group"] == "stock-sync"
    assert client["strategy"] == "AVG"
    assert client["consumer_type"] == "PUSH"
    assert (client["ordered"], client["client_rebalance"]) == (True, True)
    assert client["start_ms"] == 1795232849317
    assert (client["pull_threshold_for_queue"], client["pull_threshold_for_topic"]) == (1000, -1)
    assert client["pull_threshold_size_for_topic"] is None
    assert client["properties"]["enableHeartbeatChannelEventListener"] == "true"
    topics = [(row["topic"], row["expression"]) for row in facts(results, "client_subscription")]
    assert topics == [("%RETRY%stock-sync", "*"), ("stock", "TagA || TagB")]
    assert facts(results, "client_offset")[0]["commit_offset"] == 12
    assert facts(results, "user_info") == [{"key": "deployment", "value": "blue"}]
    assert facts(results, "client_rates")[0]["pull_rt"] == 4054.33
    assert codes(results) == []


def test_the_process_queue_table() -> None:
    [queue] = facts(parse_consumer_status(CLIENT, "f"), "client_queue")
    assert (queue["topic"], queue["broker_name"], queue["queue_id"]) == ("stock", "broker-a", 0)
    assert (queue["commit_offset"], queue["locked"], queue["dropped"]) == (12, True, False)
    assert queue["last_lock_ms"] == 1795233050422
    zone = ZoneInfo("Asia/Shanghai")
    [queue] = facts(parse_consumer_status(CLIENT, "f", time_zone=zone), "client_queue")
    assert queue["last_lock_ms"] == 1795233050422 - 8 * 3_600_000


def test_4_9_2_and_before_have_narrower_columns() -> None:
    start, end = CLIENT.index("#Consumer MQ Detail#\n") + 21, CLIENT.index("\n\n\n#Consumer Pop")
    rows = [line[:32] + line[64:] for line in CLIENT[start:end].split("\n")]
    narrow = CLIENT[:start] + "\n".join(rows) + CLIENT[end:]
    assert parse_consumer_status(narrow, "f") == parse_consumer_status(CLIENT, "f")


def test_queues_that_are_popped() -> None:
    [queue] = facts(parse_consumer_status(CLIENT, "f"), "client_pop_queue")
    assert (queue["wait_ack_count"], queue["last_pop_ms"]) == (2, 1795233060778)
    assert queue["queue_id"] == 1


def test_any_queue_of_a_broker_can_be_popped_but_not_held() -> None:
    any_queue = CLIENT.replace("  1     PopProcess", "  -1    PopProcess")
    [queue] = facts(parse_consumer_status(any_queue, "f"), "client_pop_queue")
    assert queue["queue_id"] == -1
    below = CLIENT.replace("  1     PopProcess", "  -2    PopProcess")
    assert codes(parse_consumer_status(below, "f")) == ["BAD_NUMBER"]
    held = CLIENT.replace("  0     ProcessQueue", "  -1    ProcessQueue")
    assert codes(parse_consumer_status(held, "f")) == ["BAD_NUMBER"]


def test_a_topic_wider_than_its_column() -> None:
    topic = "%RETRY%" + "g" * 90
    text = CLIENT.replace(f"stock{' ' * 59}  broker-a", f"{topic}  broker-a")
    [queue] = facts(parse_consumer_status(text, "f"), "client_queue")
    assert (queue["topic"], queue["broker_name"]) == (topic, "broker-a")


def test_a_strategy_that_is_not_rocketmq_s_keeps_its_class() -> None:
    text = CLIENT.replace("org.apache.rocketmq.client.consumer.rebalance.Allocate", "com.acme.My")
    [client] = facts(parse_consumer_status(text, "f"), "client")
    assert client["strategy"] == "com.acme.MyMessageQueueAveragely"


def test_stacks_of_the_client_make_no_facts() -> None:
    assert parse_consumer_status(CLIENT + JSTACK, "f") == parse_consumer_status(CLIENT, "f")


def test_a_cut_file_loses_only_its_last_row() -> None:
    cut = CLIENT[: CLIENT.index("cachedMsgMaxOffset")]
    results = parse_consumer_status(cut, "f")
    assert codes(results) == ["UNPARSABLE_LINE", "UNPARSABLE_DOCUMENT"]
    assert len(facts(results, "client_offset")) == 1
    assert facts(results, "client_queue") == []


def test_bad_rows_are_refused_by_name() -> None:
    for good, bad, code in (
        ("commitOffset=12", "commitOffset=1x", "BAD_NUMBER"),
        ("locked=true", "locked=yes", "UNPARSABLE_LINE"),
        ("droped=false, ", "", "UNPARSABLE_LINE"),
        ("=20261121035050422", "=2026", "BAD_TIME"),
        ("=20261121035050422", "=20261321035050422", "BAD_TIME"),
        ("002 Topic: stock", "002 stock", "UNPARSABLE_LINE"),
        ("PROP_CONSUME_TYPE                       :", "PROP_CONSUME_TYPE", "UNPARSABLE_LINE"),
        ("1795232849317", "yesterday", "BAD_NUMBER"),
    ):
        assert codes(parse_consumer_status(CLIENT.replace(good, bad), "f")) == [code], bad


def test_a_failure_and_nothing() -> None:
    assert kinds(parse_consumer_status(NO_BROKER, "f")) == ["admin_error"]
    assert kinds(parse_consumer_status("", "f")) == ["no_output"]


def test_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-consumerStatus", parse_consumer_status, parse_running_info)
    assert counts["client"] >= 1
    assert counts["client_queue"] == counts["client_offset"] > counts["client"]


ONS = "com.aliyun.openservices.shade.com.alibaba.rocketmq.client.consumer.rebalance."


@pytest.mark.parametrize(
    ("java_class", "strategy"),
    [
        (ONS + "AllocateMessageQueueAveragely", "AVG"),
        ("com.alibaba.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig", "CONFIG"),
        ("com.example.AllocateMessageQueueAveragely", "com.example.AllocateMessageQueueAveragely"),
    ],
)
def test_classes_under_other_packages(java_class: str, strategy: str) -> None:
    apache = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"
    [client] = facts(parse_consumer_status(CLIENT.replace(apache, java_class), "f"), "client")
    assert client["strategy"] == strategy


@pytest.mark.parametrize("end", ["#Consumer Offset#", "#Consumer MQ Detail#", "#Consumer Pop"])
def test_an_answer_that_ends_before_or_among_its_queues_does_not_tell_them(end: str) -> None:
    [cut] = facts(parse_consumer_status(CLIENT.partition(end)[0], "f"), "client")
    assert cut["queues_told"] is False
    [whole] = facts(parse_consumer_status(CLIENT, "f"), "client")
    assert whole["queues_told"] is True


def test_a_refused_row_of_popped_queues_is_a_queue_that_is_not_told() -> None:
    lines = CLIENT.splitlines(keepends=True)
    first = lines.index("#Consumer Pop Detail#\n") + 2
    torn = "".join([*lines[:first], lines[first][4:], *lines[first + 1 :]])
    [client] = facts(parse_consumer_status(torn, "f"), "client")
    assert client["queues_told"] is False
    [cut] = facts(parse_consumer_status("".join(lines[: first + 1]), "f"), "client")
    assert cut["queues_told"] is False


def test_lines_that_a_terminal_cut_at_one_width_are_no_long_header() -> None:
    """All are as long as the terminal is wide, as lines that it broke are."""
    cut = "\n".join(line[:100] for line in CLIENT.splitlines()) + "\n"
    results = parse_consumer_status(cut, "f")
    [client] = facts(results, "client")
    assert client["queues_told"] is False
    assert facts(results, "client_queue") == []


LIST_3_2 = """\
001  10.40.3.88@sync1                         V3_2_1               1483105100000/10.40.3.88@sync1
010  10.40.3.89@a b                           V3_2_6               1483105100000/10.40.3.89@a b


Same subscription in the same group of consumer
"""


def test_the_list_of_3_2_has_no_header() -> None:
    results = parse_consumer_status(LIST_3_2, "f")
    assert codes(results) == []
    assert facts(results, "listed_client") == [
        {"client_id": "10.40.3.88@sync1", "version": "V3_2_1"},
        {"client_id": "10.40.3.89@a b", "version": "V3_2_6"},
    ]
    # near misses: what looks like a row and is none is refused
    for line in ("001  10.40.3.88@sync1 V3_2_1 1483105100000/another@id", "001 x", "x  y 1/z"):
        assert codes(parse_consumer_status(line + "\n", "f")) == ["UNPARSABLE_LINE"]


def test_3_2_does_not_print_how_large_the_cache_is() -> None:
    text = CLIENT.replace("cachedMsgSizeInMiB=0, ", "")
    results = parse_consumer_status(text, "f")
    assert codes(results) == codes(parse_consumer_status(CLIENT, "f"))
    (queue,) = facts(results, "client_queue")
    assert queue["cached_mib"] is None
    assert queue == facts(parse_consumer_status(CLIENT, "f"), "client_queue")[0] | {
        "cached_mib": None
    }


PROMPT = (
    "[mq@host bin]$ sh ./mqadmin consumerStatus -n 127.0.0.1:9876 -g g -i {} -b 10.0.0.9:10911\n"
)
OLD = CLIENT.replace("clientIP", "otherIP").replace("instanceName", "otherName")


@pytest.mark.parametrize(
    ("text", "client_id"),
    [
        (CLIENT, "10.0.2.11@31549#3178133647322"),
        (CLIENT.replace("clientIP  ", "unitName                                : u1\nclientIP  "),
         "10.0.2.11@31549#3178133647322@u1"),
        (CLIENT.replace("clientIP  ", "unitName                                : null\nclientIP  "),
         "10.0.2.11@31549#3178133647322"),
        (CLIENT.replace("clientIP  ",
                        "enableStreamRequestType                 : true\nclientIP  "),
         "10.0.2.11@31549#3178133647322@STREAM"),
        (OLD, None),
        (PROMPT.format("10.0.0.1@7") + OLD, "10.0.0.1@7"),
        ("mq> mqadmin.cmd consumerStatus -i 10.0.0.1@7 -g g\r\n" + OLD, "10.0.0.1@7"),
        (PROMPT.format("10.0.0.1@7") + PROMPT.format("10.0.0.2@7") + OLD, None),
        ("[mq@host bin]$ sh ./mqadmin consumerStatus -g a-i b\n" + OLD, None),
        (PROMPT.format("10.0.0.1@7") + OLD + PROMPT.format("10.0.0.2@7") + OLD, None),
    ],
)  # fmt: skip
def test_whose_running_info_it_is(text: str, client_id: str | None) -> None:
    assert client_of_output(text, parse_consumer_status(text, "f")) == client_id


def test_a_command_line_above_the_output_is_no_row() -> None:
    results = parse_consumer_status(PROMPT.format("10.0.0.1@7") + OLD, "f")
    assert codes(results) == codes(parse_consumer_status(OLD, "f"))


def test_what_was_copied_from_a_terminal_may_lack_queues() -> None:
    pasted = PROMPT.format("10.0.0.1@7") + OLD
    told = [facts(parse_consumer_status(t, "f"), "client")[0]["queues_told"] for t in (OLD, pasted)]
    assert told == [True, False]


def test_sorted_lines_do_not_show_queues() -> None:
    """``sort`` puts the titles together, so no row belongs to the title above it."""
    lines = "\n".join(sorted(CLIENT.splitlines()))
    read = parse_consumer_status(lines, "f")
    assert not facts(read, "client_queue")
    assert "UNPARSABLE_LINE" in codes(read)
