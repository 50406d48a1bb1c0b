"""Tables as they are copied from the dashboard's page, and as people write them in Markdown."""

import json
from typing import Any

import pytest

from rebalance_core.ingest.parse.console_tables import console_answers

CLIENTS = [
    ["ClientId", "ClientAddr", "Language", "Version"],
    ["172.17.0.1@173", "10.0.0.1:59606", "JAVA", "V4_5_1"],
    ["172.17.0.1@170", "10.0.0.2:48864", "GO", "V4_5_1"],
]
QUEUES = [
    ["broker", "queue", "consumerClient", "brokerOffset", "consumerOffset", "diffTotal", "last"],
    ["broker a", "0", "10.0.0.1@1", "100", "90", "10", "2024-05-06 08:00:00"],
    ["broker a", "1", "", "100", "-1", "101", "N/A"],
]
HELD = [
    {
        "brokerName": "broker a",
        "queueId": 0,
        "clientInfo": "10.0.0.1@1",
        "brokerOffset": 100,
        "consumerOffset": 90,
    },
    {
        "brokerName": "broker a",
        "queueId": 1,
        "clientInfo": None,
        "brokerOffset": 100,
        "consumerOffset": -1,
    },
]


def tabs(rows: list[list[str]]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def bars(rows: list[list[str]]) -> str:
    return "".join(" | ".join(row) + "\n" for row in rows)


def markdown(rows: list[list[str]]) -> str:
    return bars([["", *row, ""] for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])])


def answers(text: str) -> list[Any]:
    documents = [json.loads(answer) for answer in console_answers(text, "no-topic")[0]]
    assert all(document["status"] == 0 for document in documents)
    return [document["data"] for document in documents]


def answer(text: str) -> Any:
    (only,) = answers(text)
    return only


@pytest.mark.parametrize("form", [tabs, bars, markdown])
def test_clients(form: Any) -> None:
    listed = answer(f"What I see:\n\n{form(CLIENTS)}\nand nothing else | really\n")
    assert listed == {
        "connectionSet": [
            {
                "clientId": "172.17.0.1@173",
                "clientAddr": "10.0.0.1:59606",
                "language": "JAVA",
                "versionDesc": "V4_5_1",
            },
            {
                "clientId": "172.17.0.1@170",
                "clientAddr": "10.0.0.2:48864",
                "language": "GO",
                "versionDesc": "V4_5_1",
            },
        ],
        "subscriptionTable": {},
    }


def test_the_whole_page_of_a_group_s_clients() -> None:
    page = (
        f"[g]CLIENT\n{tabs(CLIENTS)}Below is subscription:\n\nTopic\tSubExpression\nT\t*\n"
        "%RETRY%g\tA || B\nConsumeType: CONSUME_PASSIVELY\n\nMessageModel: CLUSTERING\n\n"
        "ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET\nCLOSE\n"
    )
    listed = answer(page)
    assert len(listed["connectionSet"]) == 2
    assert listed["subscriptionTable"] == {
        "T": {"subString": "*"},
        "%RETRY%g": {"subString": "A || B"},
    }
    settings = {name: listed[name] for name in ("consumeType", "messageModel", "consumeFromWhere")}
    assert [*settings.values()] == [
        "CONSUME_PASSIVELY",
        "CLUSTERING",
        "CONSUME_FROM_LAST_OFFSET",
    ]


@pytest.mark.parametrize("form", [tabs, bars, markdown])
def test_queues_and_their_holders(form: Any) -> None:
    assert answer(form(QUEUES)) == [{"topic": "no-topic", "queueStatInfoList": HELD}]


@pytest.mark.parametrize(
    ("titles", "above"),
    [
        (QUEUES[0], "Topic\t{}\tDelay\t111\tLastConsumeTime\tN/A\n"),
        (QUEUES[0], "Topic: {}\nTotal Lag: 111\n"),
        (
            ["Broker", "队列", "消费者终端", "代理者位点", "消费者位点", "差值", "x"],
            "主题\t{}\t延迟\t1\n",
        ),
    ],
)
def test_each_topic_of_a_page_has_its_queues(titles: list[str], above: str) -> None:
    table = tabs([titles, *QUEUES[1:]])
    topics = answer(above.format("T1") + table + above.format("T2") + table)
    assert topics == [{"topic": name, "queueStatInfoList": HELD} for name in ("T1", "T2")]


def test_mqadmin_s_own_table_in_markdown() -> None:
    titles = ["#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff"]
    rows = [titles, ["T2", "b", "0", "9", "9", "0"], ["T1", "b", "0", "5", "2", "3"]]
    topics = answer(markdown(rows))
    assert [topic["topic"] for topic in topics] == ["T2", "T1"]
    # no column names holders
    assert all("clientInfo" not in queue for t in topics for queue in t["queueStatInfoList"])


def test_numbers_and_cells_as_people_format_them() -> None:
    bold = [["", "**b**", "`0`", "", "**1,234,567**", "900", "1", "", ""]]
    (topic,) = answer(bars([["", *QUEUES[0], ""], *bold]))
    (queue,) = topic["queueStatInfoList"]
    assert (queue["brokerName"], queue["queueId"]) == ("b", 0)
    assert (queue["brokerOffset"], queue["consumerOffset"]) == (1_234_567, 900)


def test_an_offset_that_is_no_number_is_left_for_the_reader_to_refuse() -> None:
    (topic,) = answer(tabs([QUEUES[0], ["b", "0", "", "1,00", "x", "1", ""]]))
    (queue,) = topic["queueStatInfoList"]
    assert (queue["brokerOffset"], queue["consumerOffset"]) == ("1,00", "x")


def test_empty_cells_at_the_end_of_a_row_may_be_missing_or_left_over() -> None:
    rows = [[*QUEUES[1], "", ""], QUEUES[2][:5]]
    assert answer(tabs([QUEUES[0], *rows])) == [{"topic": "no-topic", "queueStatInfoList": HELD}]


@pytest.mark.parametrize("form", [tabs, bars])
def test_a_line_between_rows_is_kept_for_the_reader_to_refuse(form: Any) -> None:
    """A cell with a line break, or a row with one cell more: what follows is still read."""
    for stray in ([["12:00:00", "N/A"]], [[*QUEUES[1], "more"]]):
        (topic,) = answer(form([*QUEUES[:2], *stray, QUEUES[2]]))
        first, kept, last = topic["queueStatInfoList"]
        assert [first, last] == HELD
        assert stray[0][0] in kept
        # after the last row it is no part of the table
        (topic,) = answer(form([*QUEUES, *stray]))
        assert topic["queueStatInfoList"] == HELD
    (topic,) = answer(form(QUEUES[:2]) + "12:00:00\n" + form(QUEUES[2:]))
    assert topic["queueStatInfoList"] == HELD


def test_each_table_of_clients_is_an_answer_and_so_is_a_topic_seen_again() -> None:
    first, second = answers(f"Group A\n{tabs(CLIENTS)}\nGroup B\n{tabs(CLIENTS[:2])}")
    assert [len(each["connectionSet"]) for each in (first, second)] == [2, 1]
    clients, queues = answers(f"{tabs(CLIENTS)}\nTopic\tT\n{tabs(QUEUES)}")
    assert (len(clients["connectionSet"]), queues[0]["topic"]) == (2, "T")
    before, later = answers(f"Topic\tT\n{tabs(QUEUES)}5 minutes later:\n{tabs(QUEUES)}")
    assert before == later == [{"topic": "T", "queueStatInfoList": HELD}]


def test_what_mqadmin_printed_keeps_its_settings() -> None:
    printed = "#ClientId  #ClientAddr\na@1  1.1.1.1:1\n\nConsumeType: CONSUME_PASSIVELY\n"
    (answer,), rest = console_answers(f"{tabs(CLIENTS)}{printed}", "no-topic")
    assert "consumeType" not in answer
    assert rest == printed


def test_lines_outside_of_the_tables_are_returned() -> None:
    _, rest = console_answers(f"before\n{tabs(CLIENTS)}after\n", "no-topic")
    assert rest == "before\nafter\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a | b\n1 | 2\n",
        "#Topic\t#Broker Name\t#QID\t#Broker Offset\t#Consumer Offset\nT\tb\t0\t1\t1\n",
        "2024-05-06 08:00:01,000 INFO RocketmqClient - a|ClientId|b\n",
        '{"connectionSet": []}',
        "ClientId\tClientAddr\tLanguage\tVersion\n",
    ],
)
def test_other_texts_are_left_alone(text: str) -> None:
    """A header without a row lists nobody, which may be a page that was still loading."""
    assert answers(text) == []
