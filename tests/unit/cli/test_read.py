"""`rebalance read`: what one file is, and what it shows by itself."""

import gzip
import io
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rebalance_core.cli.main import main
from tests.tree import TREE

CONNECTION = """\
#ClientId                            #ClientAddr            #Language  #Version
172.17.0.1@170                       10.31.79.1:59606       JAVA       V4_5_1
172.17.0.1@170                       10.31.79.2:48864       JAVA       V4_5_1
172.17.0.1@173                       10.31.79.3:48861       JAVA       V4_5_1

Below is subscription:
#Topic               #SubExpression
%RETRY%G             *
T                    *

ConsumeType: CONSUME_PASSIVELY
MessageModel: CLUSTERING
ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET
"""
CASES = TREE / "tests/cases/data"
ONCE = CONNECTION.replace(
    "172.17.0.1@170                       10.31.79.2",
    "10.0.0.9@9                           10.31.79.2",
)
HEAD = (
    "#Topic  #Broker Name  #QID  #Broker Offset  #Consumer Offset  #Client IP  #Diff  #Inflight"
    "  #LastTime\n"
)
WRITTEN_S = 1_800_000_000
"""When every file of these tests was written."""
STORE = '{\n  "offsetTable":{\n    "T@g":{0:1,1:2}\n  }\n}\n'
END = "\nConsume TPS: 0.28\nConsume Diff Total: {}\nConsume Inflight Total: 0\n"
ROW = "{}  {}  {}  {}  {}  {}  {}  0  2024-05-06 01:59:57\n"


def progress(*rows: tuple[str, int, int, int, str]) -> str:
    """The answer of ``consumerProgress -s true`` on rows of broker, queue, end, commit, holder."""
    lines = [
        ROW.format("T", broker, queue, end, commit, holder, end - commit)
        for broker, queue, end, commit, holder in rows
    ]
    total = sum(end - commit for _, _, end, commit, _ in rows)
    return HEAD + "".join(lines) + END.format(total)


N_A = progress(
    ("broker-a", 0, 1000, 1000, "10.0.0.1"),
    ("broker-a", 1, 1000, 1000, "10.0.0.2"),
    ("broker-b", 0, 1000, 200, "N/A"),
    ("broker-b", 1, 1000, 200, "N/A"),
)
QUOTED_LOG = (
    "2024-05-06 08:00:01,000 WARN RocketmqClient - doRebalance, cg, add new mq failed, "
    "MessageQueue [topic=T, brokerName=a, queueId=0]\n"
)
HELD = progress(("broker-a", 0, 1000, 1000, "10.0.0.1"), ("broker-a", 1, 1000, 900, "10.0.0.2"))


class Reading:
    """Runs `read` on files, and returns the exit code, the text or the JSON object."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def file(self, name: str, content: str | bytes) -> str:
        """Write a file; its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(path, (WRITTEN_S, WRITTEN_S))
        return str(path)

    def text(self, *words: str) -> tuple[int, str]:
        """Return how it ends, and its summary on one line."""
        code = main("read", list(words))
        printed = self._capsys.readouterr()
        return code, " ".join((printed.out + printed.err).split())

    def facts(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Return how it ends, and its JSON object."""
        code = main("read", [*words, "--json"])
        facts: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        assert facts["exit_code"] == code
        return code, facts

    def rules(self, *words: str) -> list[str]:
        """Return the rules of the findings in the first file."""
        one = self.facts(*words)[1]["files"][0]
        found = [*one["findings"], *(f for group in one["groups"] for f in group["findings"])]
        return [finding["rule_id"] for finding in found]


@pytest.fixture
def reading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Reading:
    """Reads files of a folder of its own."""
    return Reading(tmp_path, capsys)


def test_an_id_that_a_broker_lists_from_two_addresses(reading: Reading) -> None:
    file = reading.file("paste.txt", CONNECTION)
    code, text = reading.text(file)
    assert code == 3
    assert "the answer of mqadmin consumerConnection G" in text
    assert "3 connections of 2 client ids: 3 JAVA 4.5.1 subscribed: T (CLUSTERING)" in text
    assert "ERROR DUPLICATE_CLIENT_ID the broker lists the client id 172.17.0.1@170" in text
    assert "10.31.79.1:59606, 10.31.79.2:48864" in text
    assert text.count("This file alone does not show which queues each member holds") == 1
    assert "collected" not in text  # not a word on files that are missing
    assert reading.text(reading.file("once.txt", ONCE))[0] == 0


def test_queues_without_a_holder_and_their_difference(reading: Reading) -> None:
    code, text = reading.text(reading.file("1714960800000-consumerProgress-s-G.txt", N_A))
    assert code == 3
    assert "the answer of mqadmin consumerProgress G 4 queues of T: " in text
    assert "held by 10.0.0.1 (1), 10.0.0.2 (1), 2 without a holder" in text
    assert "1,600 messages unread in 2 queues: T broker-b:0 800, T broker-b:1 800" in text
    assert "ERROR QUEUES_NOT_READ broker-b:0-1 of T: no holder" in text
    assert "OFFLINE" not in text  # whether members are listed, no line of it says
    assert (
        "This file alone does not show which members are connected (consumerConnection -b)" in text
    )
    code, text = reading.text(reading.file("held.txt", HELD))
    assert (code, "100 messages unread in 1 queue: T broker-a:1 100" in text) == (0, True)


def test_an_answer_without_a_time_is_not_dated_to_its_file(reading: Reading) -> None:
    path = reading.file("pasted.txt", N_A)
    _, text = reading.text(path)
    assert "broker-b:0-1 of T: no holder, 1,600 messages behind." in text
    _, facts = reading.facts(path)
    (finding,) = facts["files"][0]["groups"][0]["findings"]
    assert finding["first_ms"] is None
    assert "2027-01" not in text + json.dumps(facts)
    _, text = reading.text(reading.file("1714960800000-consumerProgress-s-G.txt", N_A))
    assert "no holder (dump of 2024-05-06 02:00:00Z)" in text


def test_a_cut_answer_is_no_verdict_on_the_group(reading: Reading) -> None:
    read = "".join(
        ROW.format("%RETRY%G", broker, 0, 7, 7, "10.0.0.1", 0)
        for broker in ("broker-a", "broker-b")
    )
    code, text = reading.text(reading.file("cut.txt", HEAD + read))
    assert code == 3
    assert "consumerProgress G parts of it were not understood: is cut off" in text
    assert "2 queues of %RETRY%G in the rows read: held by 10.0.0.1 (2)" in text
    assert "no queue in the rows read has unread messages" in text
    code, text = reading.text(reading.file("whole.txt", HEAD + read + END.format(0)))
    assert (code, "no queue has unread messages" in text) == (0, True)


def test_where_no_queue_has_a_holder_the_group_may_be_read_otherwise(reading: Reading) -> None:
    unheld = progress(("broker-a", 0, 9, 1, "N/A"), ("broker-a", 1, 9, 1, "N/A"))
    code, text = reading.text(reading.file("unheld.txt", unheld))
    assert code == 3
    assert "WARNING QUEUES_NOT_READ" in text
    assert "or if the group is BROADCASTING, pops or reads through a proxy" in text


def test_commits_above_the_end(reading: Reading) -> None:
    above = progress(*(("broker-a", queue, 1290000, 163105120, "10.0.0.1") for queue in range(2)))
    assert reading.rules(reading.file("above.txt", above)) == ["COMMITS_ABOVE_END"]
    code, text = reading.text(reading.file("above.txt", above))
    assert (code, "are up to 161,815,120 messages above the end" in text) == (3, True)


def dashboard(data: object, error: str | None = None) -> str:
    """An answer of the dashboard."""
    return json.dumps({"status": -1 if error else 0, "data": data, "errMsg": error})


def queue(number: int, commit: int, client: str | None) -> dict[str, object]:
    """A queue as the dashboard shows it, with 40 messages."""
    return {
        "brokerName": "broker-a",
        "queueId": number,
        "brokerOffset": 40,
        "consumerOffset": commit,
        "clientInfo": client,
        "lastTimestamp": 1709535591000,
    }


def test_answers_of_the_dashboard(reading: Reading) -> None:
    queues = [queue(0, 40, "10.54.3.2@1#11"), queue(1, 10, None)]
    topics = [{"topic": "T", "diffTotal": 30, "lastTimestamp": 1, "queueStatInfoList": queues}]
    file = reading.file("paste.json", dashboard(topics))
    code, text = reading.text("--group", "G", file)
    assert code == 3
    assert "the dashboard's answer as of consumerProgress G" in text
    assert "2 queues of T: held by 10.54.3.2@1#11 (1), 1 without a holder" in text
    offline = "CODE: 206  DESC: the consumer group[G-1] not online BROKER: 10.70.1.11:10911"
    code, text = reading.text(reading.file("offline.json", dashboard(None, offline)))
    assert code == 3
    assert "consumerConnection G-1 the answer: no member of the group is online" in text
    code, text = reading.text(reading.file("empty.json", dashboard([])))
    assert (code, "is an answer from the dashboard that lists nothing" in text) == (4, True)


def test_tables_copied_from_the_dashboard_s_page(reading: Reading) -> None:
    clients = "ClientId | ClientAddr\na@1 | 10.0.0.1:5\na@1 | 10.0.0.2:6\nb@1 | 10.0.0.3:7\n"
    file = reading.file("clients.txt", clients)
    code, text = reading.text("--group", "cg", file)
    assert (code, "3 connections of 2 client ids" in text) == (3, True)
    assert "2 client ids:" not in text, "the table has no versions"
    assert reading.rules(file) == ["DUPLICATE_CLIENT_ID"]
    queues = (
        "Topic\tT\tDelay\t80\nbroker\tqueue\tconsumerClient\tbrokerOffset\tconsumerOffset\n"
        "broker-a\t0\ta@1\t100\t100\nbroker-a\t1\t\t100\t20\n"
    )
    code, text = reading.text(reading.file("queues.txt", queues))
    assert (code, "2 queues of T: held by a@1 (1), 1 without a holder" in text) == (3, True)
    assert "broker-a:1 of T: no holder, 80 messages behind" in text
    code, text = reading.text(reading.file("broken.txt", queues + "broker-a\t2\ta@1\t100\tx\n"))
    assert (code, "parts of it were not understood" in text) == (3, True)
    assert "2 queues of T in the rows read" in text
    torn = queues.replace("broker-a\t1", "12:00:00\tN/A\nbroker-a\t1")
    code, text = reading.text(reading.file("torn.txt", torn))
    assert (code, "is not a row of the table around it" in text) == (3, True)
    assert "80 messages unread" in text


def test_each_table_of_a_paste_is_an_answer_and_so_is_what_mqadmin_printed(
    reading: Reading,
) -> None:
    clients = "ClientId\tClientAddr\na@1\t10.0.0.1:5\n"
    for other, shown in (
        (HELD, "100 messages unread"),
        (QUOTED_LOG, "1 queue not taken over"),
        ("Topic\tT\nbroker\tqueue\tbrokerOffset\tconsumerOffset\na\t0\t9\t2\n", "7 messages"),
    ):
        text = reading.text(reading.file("both.txt", f"{other}\nand the members:\n{clients}"))[1]
        assert "answer 2 of 2" in text
        assert "1 connection" in text
        assert shown in text
    # two groups, or a group at two times: no id is listed twice
    text = reading.text(reading.file("twice.txt", f"A\n{clients}B\n{clients}"))[1]
    assert "answer 2 of 2" in text
    assert "DUPLICATE_CLIENT_ID" not in text


def test_two_listeners_of_one_group_with_a_topic_each(reading: Reading) -> None:
    one, other = "10.54.3.2@1#11", "10.54.3.2@1#12"
    topics = [
        {"topic": topic, "diffTotal": 30, "lastTimestamp": 1, "queueStatInfoList": queues}
        for topic, queues in (
            ("T1", [queue(0, 40, one), queue(1, 10, None)]),
            ("T2", [queue(0, 10, None), queue(1, 40, other)]),
        )
    ]
    file = reading.file("paste.json", dashboard(topics))
    assert reading.rules(file) == [*2 * ["QUEUES_NOT_READ"], "INCONSISTENT_SUBSCRIPTION"]
    code, text = reading.text(file)
    assert (code, f"({one}: T1; {other}: T2)" in text) == (3, True)


def test_standard_input_as_copied_from_a_terminal(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = "[root@mq-1 bin]$ "
    asked = f"{prompt}sh mqadmin consumerProgress -n 10.0.0.1:9876 -g cg-orders -s true\n"
    text = (asked + N_A + prompt).replace("\n", "\r\n")
    for pasted in (text.encode(), b"\xef\xbb\xbf" + text.encode(), text.encode("utf-16")):
        stdin = SimpleNamespace(buffer=io.BytesIO(pasted))
        monkeypatch.setattr("sys.stdin", stdin)
        code, shown = reading.text("-")
        assert code == 3
        assert "standard input: the answer of mqadmin consumerProgress cg-orders" in shown
        assert "1,600 messages unread" in shown


@pytest.mark.parametrize(
    "dress",
    [
        "\x1b[32m{}\x1b[0m",
        "> {}",
        ">{}",
    ],
)
def test_a_quoted_or_coloured_answer_is_read_as_it_was(reading: Reading, dress: str) -> None:
    for name, content in (("progress.txt", N_A), ("store.json", STORE)):
        plain = reading.facts(reading.file(name, content))
        lines = [dress.format(line) for line in content.splitlines()]
        assert reading.facts(reading.file(name, "\n".join(lines) + "\n")) == plain


@pytest.mark.parametrize(
    "around",
    [
        "```\n{}```\n",
        "```text\n{}```\n",
        "[root@mq-1 config]$ cat store.json\n{}[root@mq-1 config]$ ",
        "$ cat store.json\n{}\n$ ",
        "root@mq-1:/opt# cat store.json\n{}\nroot@mq-1:/opt# ",
    ],
)
def test_a_store_copied_from_a_terminal_or_a_page(reading: Reading, around: str) -> None:
    plain = reading.facts(reading.file("store.json", STORE))
    pasted = around.replace("{}", STORE)
    assert reading.facts(reading.file("store.json", pasted)) == plain


def test_several_answers_in_one_paste(reading: Reading) -> None:
    code, text = reading.text(reading.file("paste.txt", CONNECTION + "\n" + N_A))
    assert code == 3
    assert "paste.txt, answer 1 of 2: the answer of mqadmin consumerConnection G" in text
    assert "paste.txt, answer 2 of 2: the answer of mqadmin consumerProgress" in text
    assert "ERROR DUPLICATE_CLIENT_ID" in text
    assert "ERROR QUEUES_NOT_READ" in text
    # the connections of one client to two brokers are no two clients
    asked = "$ mqadmin consumerConnection -g G -b 10.0.0.1:10911\n"
    moved = ONCE.replace(":59606", ":60001").replace(":48864", ":60002").replace(":48861", ":60003")
    code, text = reading.text(reading.file("two.txt", asked + ONCE + asked + moved))
    assert (code, text.count("3 connections: 3 JAVA")) == (0, 2)


def test_a_client_that_describes_itself_is_one_answer(reading: Reading) -> None:
    """Its tables begin like those of other answers."""
    folder = CASES / "rmq-3937-span-too-long/mqadmin"
    (file,) = folder.glob("*consumerStatus*/10.41.3.1@1#9001.txt")
    described = file.read_text()
    code, text = reading.text(reading.file("status.txt", described))
    assert code == 0
    assert "it holds 5 queues" in text
    assert "answer 1 of" not in text
    assert "not understood" not in text
    code, text = reading.text(reading.file("both.txt", ONCE + described + described))
    assert code == 0
    assert "answer 3 of 3" in text
    assert text.count("it holds 5 queues") == 2


def test_a_client_s_answer_that_ends_before_its_last_queue(reading: Reading) -> None:
    folder = CASES / "rmq-3937-span-too-long/mqadmin"
    (file,) = folder.glob("*consumerStatus*/10.41.3.1@1#9001.txt")
    head, title, rest = file.read_text().partition("#Consumer MQ Detail#\n")
    assert "it holds" not in reading.text(reading.file("properties.txt", head))[1]
    lines = rest.splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if "ProcessQueueInfo [" in line)
    cut = head + title + "".join(lines[: first + 1])
    assert "it holds 1 queue in the rows read" in reading.text(reading.file("cut.txt", cut))[1]


def test_a_client_s_log_shows_a_standstill_by_itself(reading: Reading) -> None:
    """Its commits are equal, and its cache has messages beyond them; no end is needed."""
    code, text = reading.text(str(CASES / "go-947-span-too-long/clients/quote-1/rocketmq.log"))
    assert code == 3
    assert "flow control of 1 queue from 2022-10-14 10:10:00Z" in text
    assert "WARNING COMMIT_STANDS_STILL The commit of 1 queue has not moved" in text
    assert "mq-internal-0:0 at 18236000; a message is not finished" in text
    log = CASES / "src-slow-listener/clients/slow-1/rocketmq_client.log"
    code, text = reading.text(str(log))
    assert code == 0  # its commits move
    assert "the cached message count exceeds the threshold" in text


def test_a_client_shows_the_messages_that_it_has_not_finished(reading: Reading) -> None:
    folder = CASES / "rmq-3937-span-too-long/mqadmin"
    (file,) = folder.glob("*consumerStatus*/10.41.3.1@1#9001.txt")
    assert "order_sync broker-c:1 3 (commit 668047)" in reading.text(str(file))[1]
    (group,) = reading.facts(str(file))[1]["files"][0]["groups"]
    assert [queue["messages"] for queue in group["cached"]] == [3, 3]
    assert {queue["client_id"] for queue in group["cached"]} == {"10.41.3.1@1#9001"}


def test_the_group_that_a_file_does_not_name(reading: Reading) -> None:
    file = reading.file("paste.txt", N_A)
    assert "of a group that it does not name (--group)" in reading.text(file)[1]
    code, facts = reading.facts("--group", "cg", file)
    (one,) = facts["files"]
    assert (code, facts["job"], facts["status"]) == (3, "read", "DIFFERENCES")
    assert (one["command"], one["wrong"], one["reason"]) == ("consumerProgress", True, None)
    (group,) = one["groups"]
    assert group["consumer_group"] == "cg"
    assert [row["unread"] for row in group["queues"]] == [0, 0, 800, 800]
    assert [row["client"] for row in group["queues"]] == ["10.0.0.1", "10.0.0.2", None, None]


def test_a_failure_of_mqadmin(reading: Reading) -> None:
    why = (
        "org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route "
        "info in name server for the topic: %RETRY%g\n\tat org.apache.rocketmq.X.y(X.java:1)\n"
    )
    code, text = reading.text(reading.file("1-consumerStatus-g.txt", why))
    assert code == 3
    assert "mqadmin failed: org.apache.rocketmq.client.exception.MQClientException CODE: 17" in text


def test_an_answer_that_is_cut_in_its_first_row_is_named_as_cut(reading: Reading) -> None:
    listed = (
        "#Index     #ClientId             #Version   #ConsumerRunningInfoFile\n1          10.40"
    )
    why = "and is cut off: it ends inside a row"
    for name in ("1483105100000-consumerStatus-GID_sync.txt", "pasted.txt"):
        code, text = reading.text(reading.file(name, listed))
        assert code == 4
        assert f"is an answer from consumerStatus {why}" in text


def test_a_queue_that_mqadmin_reports_may_be_blocked(reading: Reading) -> None:
    listed = (
        "#Index     #ClientId             #Version   #ConsumerRunningInfoFile\n"
        "1          10.40.3.88@sync1      V3_2_6     1483105100000/10.40.3.88@sync1\n"
        "Same subscription in the same group of consumer\nRebalance OK\n"
        "10.40.3.88@sync1 MessageQueue [topic=B, brokerName=broker-a, queueId=0] can't consume for "
        "a while, maybe blocked, 597688ms\n"
    )
    file = reading.file("1483105100000-consumerStatus-GID_sync.txt", listed)
    assert reading.rules(file) == ["CONSUMER_BLOCKED"]


BROKER_LOG = """\
2026-11-21 11:27:00 INFO main - brokerName=broker-a
2026-11-21 11:28:50 INFO AdminBrokerThread_1 - create new topic [TopicConfig [topicName=orders, \
readQueueNums=4, writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, \
order=false, attributes={}]]
2026-11-21 11:28:55 INFO HeartbeatThread_2 - new consumer connected, group: g CONSUME_PASSIVELY \
CLUSTERING channel: ClientChannelInfo [channel=[id: 0x86dde5d6, L:/10.0.0.1:10911 - \
R:/10.0.0.2:41414], clientId=10.0.0.2@20078#2063471432709, language=JAVA, version=479, \
lastUpdateTimestamp=1795231735135]
"""


def test_a_log_states_nothing_of_owners(reading: Reading) -> None:
    name = "brokers/broker-a/broker.log.gz"
    for file in (
        reading.file("my.log", BROKER_LOG),
        reading.file(name, gzip.compress(BROKER_LOG.encode())),
    ):
        code, text = reading.text(file)
        assert (code, "a broker's log, from 2026-11-21 03:28:5" in text) == (0, True)
        assert "group g orders on the broker" in text or "group g orders on broker-a" in text
        assert "4 queues to read, 4 to write" in text
        assert reading.rules(file) == []


def test_a_log_that_quotes_failures_is_no_failure(reading: Reading) -> None:
    quoted = "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 26  DESC: none"
    line = "2024-05-06 08:00:59,000 WARN RocketmqClient - something else happened\n"
    code, text = reading.text(reading.file("rocketmq_client.log", 9 * line + quoted + "\n" + line))
    assert code == 0
    assert "a client's log, of 11 lines, none of which concerns consumers" in text


def test_refused_pulls_of_a_clients_log(reading: Reading) -> None:
    began = (
        "2024-05-06 08:00:01,000 INFO RocketmqClient - [persistAll] Group: cg ClientId: 10.0.0.1@7 "
        "updateConsumeOffsetToBroker MessageQueue [topic=T, brokerName=broker-a, queueId=0] 9\n"
    )
    refused = (
        "2024-05-06 08:05:59,000 WARN NettyClientPublicExecutor_1 - execute the pull request "
        "exception\norg.apache.rocketmq.client.exception.MQBrokerException: CODE: 16  DESC: "
        "subscription group no permission, cg BROKER: 10.5.1.1:10911\n"
    )
    code, text = reading.text(reading.file("rocketmq_client.log", began + refused))
    assert code == 3
    assert "PULL refused in 1 minute at 2024-05-06 08:05:59Z" in text
    assert "CODE 16: subscription group no permission, cg" in text
    assert reading.text(reading.file("rocketmq_client.log", began))[0] == 0


CPP_COMMITS = "".join(
    f"[2024-May-06 08:00:{second:02}.123456](info):oneway updateConsumeOffsetToBroker of "
    f"mq:MessageQueue [topic=T, brokerName=broker-a, queueId=3], its offset is:{offset}"
    "[updateConsumeOffsetToBroker:310]\n"
    for second, offset in ((5, 61), (10, 61), (15, 63))
)


def test_commits_of_a_client_whose_lines_name_no_group(reading: Reading) -> None:
    file = reading.file("paste.txt", CPP_COMMITS)
    moved = "commits of 1 queue: T broker-a:3 from 61 to 63"
    code, text = reading.text(file)
    assert (code, f"a group that it does not name (--group), {moved}" in text) == (0, True)
    assert f"group cg, {moved}" in reading.text("--group", "cg", file)[1]
    # a line that names the group outranks the option
    start = "[2024-May-06 08:00:01.123456](info):DefaultMQPushConsumerImpl:own start\n"
    named = reading.file("named.txt", start + CPP_COMMITS)
    assert f"group own, {moved}" in reading.text("--group", "cg", named)[1]


def test_a_refusal_belongs_to_no_group_where_a_log_names_several(reading: Reading) -> None:
    line = "2024-05-06 08:00:0{},000 WARN RocketmqClient - {}\n"
    taken = "doRebalance, {}, add new mq failed, MessageQueue [topic=T, brokerName=b, queueId=0]"
    refused = (
        line.format(5, "execute the pull request exception")
        + "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 24  DESC: the consumer's "
        "group info not exist\n"
    )
    one = line.format(1, taken.format("g1"))
    several = one + line.format(2, taken.format("g2"))
    assert "PULL refused" in reading.text(reading.file("one.log", one + refused))[1]
    text = reading.text(reading.file("several.log", several + refused))[1]
    assert "PULL refused" not in text
    assert "does not name" not in text
    assert (
        "PULL refused" in reading.text("--group", "g2", reading.file("s.log", several + refused))[1]
    )
    # nor where only the first part of a log was read to see which groups it names
    padding = line.format(3, "x" * 200) * 60_000
    late = one + padding + line.format(4, taken.format("g2")) + refused
    assert "PULL refused" not in reading.text(reading.file("long.log", late))[1]


@pytest.mark.parametrize(
    "head",
    [
        "[2024-05-06 08:00:0{}.592] [warning] [thread@30244] - ",
        "[1031178795459018753] 2024-05-06 08:00:0{},976 WARN  [RocketmqClient  ] [worker_1] - ",
        "2024-05-06 08:00:0{},976 WARN RocketmqClient - ",
    ],
)
def test_queues_that_a_client_does_not_take_over(reading: Reading, head: str) -> None:
    lines = "".join(
        f"{head.format(queue)}doRebalance, cg, add a new mq failed, MessageQueue [topic=T, "
        f"brokerName=broker-a, queueId={queue}], because lock failed\n"
        for queue in (1, 2)
    )
    code, text = reading.text(reading.file("paste.txt", lines))
    assert code == 0
    assert "a client's log, from 2024-05-06 08:00:01Z to 2024-05-06 08:00:02Z, 2 of 2" in text
    assert (
        "group cg 2 queues not taken over from 2024-05-06 08:00:01Z to 2024-05-06 08:00:02Z: the "
        "client could not lock the queue at its broker"
    ) in text


def test_a_queue_named_in_a_line_is_no_setting_of_a_broker(reading: Reading) -> None:
    line = (
        "[2024-05-06 08:00:01.148]\tlevel:INFO\t\tclass:RocketmqClient\t\tmsg:the message queue "
        "lock OK, cg MessageQueue [topic=T, brokerName=broker-a, queueId=7]\tex:\n"
    )
    assert "paste.txt: a client's log" in reading.text(reading.file("paste.txt", line))[1]


def test_stores_and_lists_of_topics_and_brokers(reading: Reading) -> None:
    offsets = '{"offsetTable":{"T@g":{0:1,1:2}}}'
    code, text = reading.text(reading.file("consumerOffset.json", offsets))
    assert (code, "a broker's consumerOffset.json group g, commits of 2 queues" in text) == (
        0,
        True,
    )
    assert "T the broker:0 at 1, T the broker:1 at 2" in text
    many = ",".join(
        f'"T@g{number}":{{{",".join(f"{q}:{q}" for q in range(9))}}}' for number in range(14)
    )
    code, text = reading.text(reading.file("consumerOffset.json", f'{{"offsetTable":{{{many}}}}}'))
    assert "it names 14 groups" in text
    assert "group g11, commits of 9 queues: T the broker:0 at 0, " in text
    assert "T the broker:7 at 7 and 1 more" in text
    assert "and 2 more groups with commits (--json has all)" in text
    code, text = reading.text(reading.file("any.json", offsets))
    assert (code, "a broker's consumerOffset.json" in text) == (0, True)
    code, text = reading.text(reading.file("config/consumerOffset.json", '{"offsetTable":{}}'))
    assert (code, "it lists nothing" in text) == (0, True)
    route = {
        "brokerDatas": [{"brokerAddrs": {"0": "10.0.0.1:1"}, "brokerName": "b", "cluster": "c"}],
        "filterServerTable": {},
        "queueDatas": [
            {
                "brokerName": "b",
                "perm": 6,
                "readQueueNums": 4,
                "topicSysFlag": 0,
                "writeQueueNums": 8,
            }
        ],
    }
    code, text = reading.text(reading.file("1-topicRoute-T.txt", json.dumps(route)))
    assert (code, "T on b: 4 queues to read, 8 to write" in text) == (0, True)


def test_an_empty_store_that_is_not_read_is_not_taken_for_another(reading: Reading) -> None:
    empty = '{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":1},"offsetTable":{}}'
    assert "consumerOffset.json" in reading.text(reading.file("consumerOffset.json", empty))[1]
    code, text = reading.text(reading.file("delayOffset.json", empty))
    assert code == 4
    assert "is named delayOffset.json, a broker's store that ingest does not read" in text


def test_a_list_of_topics_is_of_no_single_topic(reading: Reading) -> None:
    code, text = reading.text(reading.file("1-topicList.txt", "T\n%RETRY%G\n"))
    assert code == 0
    assert "mqadmin topicList topic: topic T topic: topic %RETRY%G This file" in text


def test_several_files_each_by_itself(reading: Reading) -> None:
    good, bad = reading.file("good.txt", ONCE), reading.file("bad.txt", N_A)
    unknown = reading.file("song.txt", "La la la\n")
    code, text = reading.text(good, bad)
    assert code == 3
    assert text.index("consumerConnection G") < text.index("consumerProgress")
    assert text.count("This file alone does not show") == 2
    code, text = reading.text(good, unknown)
    assert code == 4  # what was not read may be what is wrong
    assert "song.txt is not a file that ingest reads; it begins 'La la la'" in text
    assert reading.text(bad, unknown)[0] == 3


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"La la la", "is not a file that ingest reads; it begins 'La la la'"),
        (b"", "is empty"),
        ("\r\n".encode("utf-16"), "is empty"),  # an answer of nothing, by PowerShell's >
        (bytes(range(256)) * 9, "holds binary data"),
        (b"> #Topic  #Broker Name\n> T  broker-a\n", "is not a file that ingest reads"),
        (b"#Topic #Consumer Group #Accumulation\n", "is not a file that ingest reads"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_can(
    reading: Reading, content: bytes, why: str
) -> None:
    code, text = reading.text(reading.file("unknown.txt", content))
    assert code == 4
    assert why in text
    assert "readable files: answers from mqadmin (consumerConnection" in text


def test_no_file_and_a_missing_file(reading: Reading, tmp_path: Path) -> None:
    assert reading.text()[0] == 2
    code, text = reading.text(str(tmp_path / "none.txt"))
    assert (code, "none.txt cannot be opened: No such file" in text) == (4, True)
    assert reading.text(str(tmp_path / "none.txt"), "--dry-run")[0] == 0


@pytest.mark.parametrize(
    ("name", "answer", "shown"),
    [
        (
            "getBrokerConfig-a.txt",
            "============127.0.0.1:10911============\n"
            "fileReservedTime  =  48\nbrokerName  =  a\n\n",
            "server settings: address 127.0.0.1:10911, fileReservedTime 48, brokerName a",
        ),
        (
            "exportMetrics.txt",
            "export /tmp/rocketmq/export/metrics.json success\n",
            "exported to: path /tmp/rocketmq/export/metrics.json",
        ),
        (
            "consumerStatus-g.txt",
            "#Index     #ClientId                                #Version             "
            "#ConsumerRunningInfoFile\n"
            "1          10.0.2.13@31554#3176284308534            V5_3_3               "
            "1795233041620/10.0.2.13@31554#3176284308534\n",
            "listed client: client_id 10.0.2.13@31554#3176284308534, version V5_3_3",
        ),
    ],
)
def test_an_answer_of_which_nothing_else_is_shown_states_its_facts(
    reading: Reading, name: str, answer: str, shown: str
) -> None:
    file = reading.file(name, answer)
    assert shown in reading.text(file)[1]
    assert reading.facts(file)[1]["files"][0]["stated"]


def test_a_log_with_no_line_about_consumers_is_of_no_kind(reading: Reading) -> None:
    line = "2026-12-01 08:08:47 INFO NettyServerScheduler_1 - Port: 19911, RequestCode {17:1}\n"
    text = reading.text(reading.file("broker_traffic.log", line))[1]
    assert "a log, of 1 lines, none of which concerns consumers" in text
    assert "client" not in text.partition("This file alone")[0]


def test_lines_with_a_time_and_no_date(reading: Reading) -> None:
    line = (
        "10:00:01.123 WARN  [Pull] RocketmqClient - the cached message count exceeds the threshold"
    )
    code, text = reading.text(reading.file("client.log", line))
    assert code == 4
    assert "has lines with a time and no date" in text
    assert "put the date before each time" in text
