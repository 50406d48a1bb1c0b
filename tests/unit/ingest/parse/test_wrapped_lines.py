"""What is taken off a log, what head is put in its place, and what stays as it is."""

import json
from pathlib import Path

import pytest

from rebalance_core.ingest.fact import Unreadable
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.ingest.parse.log_lines import Clock
from rebalance_core.ingest.parse.wrapped_lines import (
    CSV,
    DATED,
    DATELESS,
    OF_CPP,
    OF_GO,
    UNWRAPPED,
    Unwrapper,
    moment,
    wrapping_of,
)
from rebalance_core.ingest.parse.zones import zone_named

SERVER = "2026-11-21 11:28:55 INFO HeartbeatThread_2 - new consumer connected, group: g"
CLIENT = "2026-11-21 11:28:54.663 INFO  [7] [main] [o.a.r#?:?] - suspend this consumer, g"
WORDS = ("suspend this consumer, ", "new consumer connected, group: ", "no broker found for mq ")


def inside(*lines: str, client: bool = True, zone: str = "UTC") -> list[str]:
    wrapping = wrapping_of(lines, client=client)
    unwrapper = Unwrapper(wrapping, WORDS, client, Clock(zone_named(zone)).second_ms)
    found = [own.text for line in lines for own in unwrapper.lines(line, "f")]
    return found + [own.text for own in unwrapper.rest()]


def test_rocketmqs_own_lines_are_in_nothing() -> None:
    assert wrapping_of([SERVER], client=False) is not None
    assert wrapping_of([SERVER], client=False) == UNWRAPPED
    for line in (CLIENT, "2026-11-21 03:35:58,356 INFO RocketmqClient - suspend this consumer, g"):
        assert wrapping_of([line], client=True) == UNWRAPPED
        assert inside(line) == [line]


@pytest.mark.parametrize(
    "head",
    [
        "2026-11-21 11:28:54.663  INFO 7 --- [main] RocketmqClient : ",
        "2026-11-21 11:28:54.663  INFO 7 --- [app] [ main] o.a.r.Client : ",
        "2026-11-21 11:28:54.663 [main] INFO  RocketmqClient - ",
        "2026-11-21 11:28:54,663 level:INFO [main] ",
        "[2026-11-21 11:28:54,663] [INFO ] [main] - ",
        "2026/11/21 11:28:54.663 INFO main ",
        "2026-11-21T11:28:54.663 INFO (main) ",
        "INFO  | 2026-11-21 11:28:54.663 | main | ",
        "[main] 2026-11-21 11:28:54:663 INFO RocketmqClient: ",
    ],
)
def test_heads_of_applications_loggers(head: str) -> None:
    (line,) = inside(head + "suspend this consumer, g")
    assert line.startswith("2026-11-21 11:28:54,663 INFO ")
    assert line.endswith("wrapped - suspend this consumer, g")


def test_a_message_that_quotes_one_of_ours_is_not_ours() -> None:
    for head in ("2026-11-21 11:28:54.663 INFO 7 --- [m] x : ", "2026/11/21 11:28:54 INFO m - "):
        (line,) = inside(head + "got: suspend this consumer, g")
        assert line.endswith("wrapped - got: suspend this consumer, g")


def test_a_line_without_milliseconds_counts_from_the_end_of_its_second() -> None:
    (line,) = inside("2016-05-16 14:39:24 INFO Thread_1 - suspend this consumer, g")
    assert line == "2016-05-16 14:39:24,999 INFO wrapped - suspend this consumer, g"


def test_the_process_of_spring_boots_head_is_kept() -> None:
    (line,) = inside("2026-11-21T03:28:54.663Z  INFO 20078 --- [main] x : suspend this consumer, g")
    assert line == "2026-11-21 11:28:54.663 INFO [20078] wrapped - suspend this consumer, g"


def test_dates_that_can_be_read_two_ways_stay() -> None:
    for date in ("11/10/2026 11:28:54.663", "10.11.2026 11:28:54", "Nov 10, 2026 11:28:54 AM"):
        line = f"{date} INFO main - suspend this consumer, g"
        assert wrapping_of([line], client=True) == UNWRAPPED
        assert inside(line) == [line]


def test_a_time_without_a_date_and_without_a_carrier_stays() -> None:
    line = "11:28:54.663 [main] INFO RocketmqClient - suspend this consumer, g"
    assert inside(line) == [line]
    carried = f"2026-11-21T03:28:54.663000000Z {line}"
    assert wrapping_of([carried], client=True).head == DATELESS
    assert inside(carried) == ["2026-11-21 11:28:54.663 INFO wrapped - suspend this consumer, g"]


def test_the_line_s_own_time_counts_where_it_has_one() -> None:
    late = "2026-11-21T09:00:00.000000000Z stdout F "
    assert inside(late + SERVER, client=False) == [SERVER]


def test_parts_of_a_line_are_joined_by_stream() -> None:
    at = "2026-11-21T03:28:55.000000000Z"
    lines = [
        f"{at} stdout P {SERVER[:40]}",
        f"{at} stderr F warning",
        f"{at} stdout F {SERVER[40:]}",
        f"{at} stdout P {SERVER[:60]}",
    ]
    assert inside(*lines, client=False) == ["warning", SERVER, SERVER[:60]]


def test_a_joined_line_has_the_number_of_its_first_part() -> None:
    parts = (SERVER[:30], SERVER[30:] + "\n")
    lines = [
        json.dumps({"log": p, "stream": "stdout", "time": "2026-11-21T03:28:55Z"}) for p in parts
    ]
    unwrapper = Unwrapper(wrapping_of(lines, client=False), WORDS, False, lambda text: None)
    assert [*unwrapper.lines(lines[0], "f:1"), *unwrapper.lines(lines[1], "f:2")] == [
        (SERVER, SERVER, "f:1")
    ]


def test_a_message_of_several_lines_goes_on_below_its_head() -> None:
    line = (
        '{"@timestamp":"2026-11-21T03:28:54.663Z","message":"suspend this consumer, g\\n\\tat x",'
        '"level":"INFO","thread_name":"main"}'
    )
    assert inside(line) == [
        "2026-11-21 11:28:54.663 INFO wrapped - suspend this consumer, g",
        "\tat x",
    ]


TITLES = '"@timestamp","host.name","message"'
AT = "2026-11-21T09:00:00.000+08:00"


def test_rows_of_a_search_engine_s_table() -> None:
    rows = [TITLES, *(f'"{AT}","broker-0","{SERVER}"' for _ in range(2))]
    assert wrapping_of(rows, client=False).carriers == (CSV,)
    assert inside(*rows, client=False) == [TITLES, SERVER, SERVER]
    unquoted = f'"Nov 21, 2026 @ 09:00:00.000",7,broker-0,{SERVER.partition(",")[0]}'
    assert inside(unquoted, client=False) == [SERVER.partition(",")[0]]
    first = f'"{SERVER}","broker-0"'
    assert inside(first, client=False) == [SERVER]
    for line in (SERVER + ",x", "INFO,2026-11-21 11:28:54.663,main,new consumer connected"):
        assert inside(line, client=False) == [line], "no row of a table"
    dated = '"7","2026-11-21 11:28:54.663 [main] INFO x - suspend this consumer, g"'
    assert inside(dated) == ["2026-11-21 11:28:54,663 INFO wrapped - suspend this consumer, g"]


def test_a_quoted_message_has_its_further_lines_and_quotes() -> None:
    rows = [f'"{AT}","{SERVER} ""a""', "\tat x.Y", ' ""b"""', f'"{AT}","{SERVER}"']
    assert inside(*rows, client=False) == [f'{SERVER} "a"', "\tat x.Y", ' "b"', SERVER]


def test_a_row_whose_quotes_stay_open_ends_where_the_next_one_begins() -> None:
    rows = [f'"{AT}","{SERVER}', "\tat x.Y", f'"{AT}","{SERVER}"', f'"{AT}","{SERVER}']
    assert inside(*rows, client=False) == [SERVER, "\tat x.Y", SERVER, SERVER]


def test_a_row_is_no_longer_than_a_stack_trace() -> None:
    rows = [f'"{AT}","{SERVER}"'] * 9 + [f'"{AT}","{SERVER}', *["\tat x.Y" * 1_000] * 20]
    assert inside(*rows, client=False)[-1] == "\tat x.Y" * 1_000
    wrapping = wrapping_of(rows, client=False)
    unwrapper = Unwrapper(wrapping, WORDS, False, lambda text: None)
    held = [len([*unwrapper.lines(line, "f")]) for line in rows]
    assert sum(held[10:]) > 10


def test_rows_of_several_hosts_are_refused() -> None:
    rows = [f'"{AT}","broker-{number}","{SERVER}"' for number in range(2)]
    with pytest.raises(Unreadable, match="broker-0 and broker-1"):
        wrapping_of(rows, client=False)


def test_stack_traces_do_not_hide_a_form() -> None:
    head = "2026-11-21T11:28:54.663+08:00  WARN 1 --- [main] x : execute the pull request exception"
    stack = [
        "org.apache.rocketmq.client.MQBrokerException: CODE: 24",
        *["\tat x.Y.z(Y.java:1)"] * 9,
    ]
    assert wrapping_of([head, *stack], client=True).head == DATELESS


def test_lines_of_several_containers_are_refused() -> None:
    for lines in (
        ["[pod/a-0/main] x", "[pod/b-0/main] x"],
        ["broker-a-1  | x", "broker-b-1  | x"],
    ):
        with pytest.raises(Unreadable, match="several containers"):
            wrapping_of(lines, client=False)
    first = ["broker-a-1  | x"] * 60
    unwrapper = Unwrapper(wrapping_of(first, client=False), (), False, lambda text: None)
    assert [*unwrapper.lines(first[0], "f:1")]
    with pytest.raises(Unreadable, match="broker-a-1 and broker-b-1"):
        [*unwrapper.lines("broker-b-1  | x", "f:2")]


def test_a_server_s_local_time_is_read_by_its_zone() -> None:
    line = "2026-11-21 03:28:55.123 INFO main - new consumer connected, group: g"
    wrapping = wrapping_of([line], client=False)
    assert wrapping.head == DATED
    assert wrapping.local
    assert inside(line, client=False) == [
        "2026-11-21 11:28:55 INFO wrapped - new consumer connected, group: g"
    ]


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1795231735", 999), ("1795231735.5", 1_500), ("1795231735135", 1_135),
        ("1795231735135000000", 1_135), ("2026-11-21T03:28:55.135Z", 1_135),
        ("2026-11-21T11:28:55+08:00", 1_999),
    ],
)  # fmt: skip
def test_times_of_carriers(text: str, millis: int) -> None:
    at = moment(text)
    assert at is not None
    assert round(at.timestamp() * 1000) - 1_795_231_734_000 in (millis, millis + 1)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-21 03:28:55", "17952317351"])
def test_what_is_no_time(text: str) -> None:
    assert moment(text) is None


def test_go_in_json_and_in_logrus_text() -> None:
    of_json = (
        '{"level":"warn","ts":1795231734.663,"msg":"no broker found for mq",'
        '"PullRequest":"MessageQueue [topic=T, brokerName=b, queueId=0]"}'
    )
    of_text = (
        'time="2026-11-21T03:28:54.663Z" level=warning msg="no broker found for mq" '
        'MessageQueue="MessageQueue [topic=T, brokerName=b, queueId=0]"'
    )
    for line in (of_json, of_text):
        assert wrapping_of([line], client=True).head == OF_GO
        assert inside(line) == [
            "2026-11-21 11:28:54.663 INFO wrapped - no broker found for mq "
            "MessageQueue [topic=T, brokerName=b, queueId=0]"
        ]


def test_what_a_go_client_reports_of_itself() -> None:
    begin = 'time="2026-11-21T03:28:54.663Z" level=info msg='
    queue = "MessageQueue [topic=T, brokerName=b, queueId=0]"
    commit = (
        f'{begin}"update offset to broker success" MessageQueue="{queue}" consumerGroup=g offset=8'
    )
    balanced = f'{begin}"MessageQueue do balance done" clientID=1.1.1.1@7 consumerGroup=g topic=T'
    found = inside(
        commit,
        balanced,
        balanced,
        commit,
        f'{begin}"do balance in group failed, get consumer id list failed" consumerGroup=g topic=T',
        f'{begin}"[BUG] ConsumerId not in cidAll" cidAll="[a b]" consumerGroup=g consumerId=c',
        f'{begin}"suspend consumer: g"',
        f'{begin}"fetch offset of mq from broker error" MessageQueue="{queue}" consumerGroup=g '
        'underlayError="broker response code: 22, remarks: Not found, V3_0_6_SNAPSHOT"',
        f'{begin}"fetch offset of mq from broker error" MessageQueue="{queue}" consumerGroup=g '
        'underlayError="broker: b address not found"',
    )
    assert [line.partition(" - ")[2] for line in found] == [
        f"[persistAll] Group: g ClientId:  updateConsumeOffsetToBroker {queue} 8",
        "language of a client: GO, clientId=1.1.1.1@7, group=g",
        "MessageQueue do balance done",
        f"[persistAll] Group: g ClientId: 1.1.1.1@7 updateConsumeOffsetToBroker {queue} 8",
        "doRebalance, g T, get consumer id list failed",
        "[BUG] ConsumerGroup: g The consumerId: c not in cidAll: [a, b]",
        "suspend this consumer, g",
        f"no committed offset, Group: g {queue}",
        "fetch offset of mq from broker error",
    ]


def test_that_nothing_was_committed_is_a_fact_of_the_group(tmp_path: Path) -> None:
    log = tmp_path / "clients" / "go-1" / "rocketmq-go.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        'time="2026-11-21T03:28:54.663Z" level=error msg="fetch offset of mq from broker error" '
        'MessageQueue="MessageQueue [topic=T, brokerName=b, queueId=0]" consumerGroup=g '
        'underlayError="broker response code: 22, remarks: Not found"\n' * 3
    )
    (tmp_path / "collection.toml").write_text('cluster = "C"\n')
    rows = ingest_collection(tmp_path).tables["observed_facts"]
    (row,) = [row for row in rows if row["kind"] == "NOTHING_COMMITTED"]
    assert (row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"]) == (
        "g",
        "T",
        "b",
        0,
    )


@pytest.mark.parametrize("coloured", [False, True])
def test_a_rust_client_logs_commits_in_the_words_of_java_s(coloured: bool, tmp_path: Path) -> None:
    # rocketmq-client-rust 1.0.0, RemoteBrokerOffsetStore; tracing's default format
    where = "rocketmq_client_rust::consumer::store::remote_broker_offset_store"
    words = "[persistAll] Group: g ClientId: 10.0.0.5@7 updateConsumeOffsetToBroker MessageQueue "
    plain = "{time}  INFO {where}: {words}\n"
    colours = (
        "\x1b[2m{time}\x1b[0m \x1b[32m INFO\x1b[0m \x1b[2m{where}\x1b[0m\x1b[2m:\x1b[0m {words}\n"
    )
    log = tmp_path / "clients" / "c" / "rocketmq_client.log"
    log.parent.mkdir(parents=True)
    (tmp_path / "collection.toml").write_text('cluster = "c"\n')
    with log.open("w") as lines:
        for minute in range(3):
            said = f"{words}[topic=T, brokerName=a, queueId=1] {100 + minute}"
            form = colours if coloured else plain
            time = f"2026-11-29T08:0{minute}:00.123456Z"
            lines.write(form.format(time=time, where=where, words=said))
    rows = ingest_collection(tmp_path).tables["committed_offsets"]
    seen = [(row["client_id"], row["committed_offset"], row["observed_ms"]) for row in rows]
    first_ms = 1_795_939_200_123
    assert seen == [("10.0.0.5@7", 100 + n, first_ms + 60_000 * n) for n in range(3)]


def test_what_a_cpp_client_reports_of_itself() -> None:
    begin = "[2026-Nov-21 11:28:54.663768](info):"
    queue = "MessageQueue [topic=T, brokerName=b, queueId=0]"
    lines = [
        f"{begin}DefaultMQPushConsumerImpl:g start",
        f"{begin}Allocation result for [Consumer Group: g, Topic: T, Current Consumer ID: c@1] is",
        f"{begin}oneway updateConsumeOffsetToBroker of mq:{queue}, its offset is:8",
        f"{begin}[ERROR] Get empty consumer IDs. Consumer Group: g, Topic: T",
    ]
    assert wrapping_of(lines, client=True).head == OF_CPP
    *_, told, commit, empty = inside(*lines)
    at = "2026-11-21 11:28:54,663 INFO wrapped - "
    assert told == f"{at}language of a client: CPP, clientId=c@1, group=g"
    assert (
        commit == f"{at}[persistAll] Group: g ClientId: c@1 updateConsumeOffsetToBroker {queue} 8"
    )
    assert empty == f"{at}doRebalance, g T, get consumer id list failed"


def test_a_commit_whose_group_is_not_stated_states_nothing() -> None:
    begin = "[2026-Nov-21 11:28:54.663768](info):"
    commit = (
        f"{begin}oneway updateConsumeOffsetToBroker of mq:MessageQueue [topic=T], its offset is:8"
    )
    groups = [f"{begin}DefaultMQPushConsumerImpl:{group} start" for group in ("g", "h")]
    assert not any("[persistAll]" in line for line in inside(*groups, commit))


def test_nested_carriers() -> None:
    line = f"[pod/b-0/main] 2026-11-21T03:28:55.000000000Z \x1b[32m{SERVER}\x1b[0m"
    assert inside(line, client=False) == [SERVER]


def test_a_name_with_colours_in_a_log_without_them_stays() -> None:
    lines = [SERVER, f"{SERVER}\x1b[31m", SERVER]
    assert inside(*lines, client=False) == lines
