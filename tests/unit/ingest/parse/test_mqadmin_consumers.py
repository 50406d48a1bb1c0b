"""consumerConnection and consumerProgress."""

import re
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.parse.consumer_connection import parse_consumer_connection
from rebalance_core.ingest.parse.consumer_progress import parse_consumer_progress
from tests.unit.ingest.documents import codes, facts, kinds, parse_all
from tests.unit.ingest.parse.test_command_output import NO_BROKER, NOISE, NOT_ONLINE

TEXT = """\
#ClientId                            #ClientAddr            #Language  #Version
172.17.0.3@notify                    127.0.0.1:50582        JAVA       V5_3_3
172.17.0.2@notify                    127.0.0.1:50578        JAVA       V5_3_3
172.17.0.2@notify                    127.0.0.1:50574        JAVA       V5_3_3

Below is subscription:
#Topic               #SubExpression
orders               *
%RETRY%notify        *

ConsumeType: CONSUME_PASSIVELY
MessageModel: CLUSTERING
ConsumeFromWhere: CONSUME_FROM_FIRST_OFFSET
"""


def test_members_and_what_is_said_of_the_group() -> None:
    results = parse_consumer_connection(TEXT, "f")
    members = facts(results, "member")
    assert [member["client_addr"] for member in members] == [
        "127.0.0.1:50582",
        "127.0.0.1:50578",
        "127.0.0.1:50574",
    ]
    assert members[1] == {
        "client_id": "172.17.0.2@notify",
        "client_addr": "127.0.0.1:50578",
        "language": "JAVA",
        "version": "V5_3_3",
        "subscriptions": (("orders", "*"), ("%RETRY%notify", "*")),
        "consume_type": "CONSUME_PASSIVELY",
        "message_model": "CLUSTERING",
        "consume_from_where": "CONSUME_FROM_FIRST_OFFSET",
    }
    assert results[0].source == "f:2"
    [group] = facts(results, "group_connection")
    assert group["members"] == 3


@pytest.mark.parametrize(
    "client_id",
    ["172.16.7.50@32380#2486997762578@STREAM", "10.0.0.1@my app  v2", "c" * 300, "x@" + "y z" * 30],
    ids=["wider than its column", "with spaces", "very wide", "wide with spaces"],
)
def test_client_ids_of_any_width(client_id: str) -> None:
    row = f"{client_id:<36} {'127.0.0.1:36696':<22} {'CPP':<10} V4_9_7"
    text = TEXT.replace(TEXT.splitlines()[1], row)
    assert facts(parse_consumer_connection(text, "f"), "member")[0]["client_id"] == client_id


def test_expressions_with_spaces_and_none() -> None:
    text = TEXT.replace("orders               *", "orders               TagA || TagB")
    text = text.replace("%RETRY%notify        *", "%RETRY%notify        ")
    [group] = facts(parse_consumer_connection(text, "f"), "group_connection")
    assert group["subscriptions"] == (("orders", "TagA || TagB"), ("%RETRY%notify", ""))


def test_a_topic_wider_than_its_column() -> None:
    topic = "%RETRY%a-group-with-a-long-name"
    text = TEXT.replace("%RETRY%notify        *", f"{topic} *")
    [group] = facts(parse_consumer_connection(text, "f"), "group_connection")
    assert group["subscriptions"][1] == (topic, "*")


def test_a_broker_that_knows_no_member() -> None:
    for text in ("", "\n", NOT_ONLINE, NOISE + NOT_ONLINE):
        assert kinds(parse_consumer_connection(text, "f")) == ["no_members"]


def test_an_output_that_ends_in_output_of_the_jvm_shows_nothing() -> None:
    (refused,) = parse_consumer_connection(NOISE, "f")
    assert isinstance(refused, Unread)
    assert refused.code == "UNPARSABLE_DOCUMENT"


def test_a_broker_that_did_not_answer_shows_nothing_of_members() -> None:
    results = parse_consumer_connection(NO_BROKER, "f")
    assert kinds(results) == ["admin_error"]


def test_crlf_and_noise_change_nothing() -> None:
    noisy = NOISE + TEXT.replace("\n", "\r\n")
    expected = facts(parse_consumer_connection(TEXT, "f"), "member")
    assert facts(parse_consumer_connection(noisy, "f"), "member") == expected


def test_rows_that_are_none_are_refused() -> None:
    for row in ("172.17.0.3@notify", "x 127.0.0.1 JAVA V5_3_3", "x 127.0.0.1:1 ? V5_3_3"):
        text = TEXT.replace(TEXT.splitlines()[1], row)
        results = parse_consumer_connection(text, "f")
        assert codes(results) == ["UNPARSABLE_LINE"], row
        assert len(facts(results, "member")) == 2


@pytest.mark.parametrize("language", ["Java", "java", "JAVA"])
def test_languages_and_types_in_any_case(language: str) -> None:
    text = TEXT.replace(" JAVA ", f" {language} ").replace("CLUSTERING", "Clustering")
    assert parse_consumer_connection(text, "f") == parse_consumer_connection(TEXT, "f")


def test_columns_that_a_later_mqadmin_adds() -> None:
    head, *rows = TEXT.split("\n")[:4]
    rest = TEXT.split("\n")[4:]
    added = [f"{head}   #LastHeartbeat", *(f"{row:<80}   2026-11-21 03:40:00" for row in rows)]
    moved = [f"{'#Zone':<8} {head}", *(f"{'east':<8} {row}" for row in rows)]
    for table in (added, moved):
        results = parse_consumer_connection("\n".join([*table, *rest]), "f")
        assert results == parse_consumer_connection(TEXT, "f")


@pytest.mark.parametrize(
    "damaged",
    [
        TEXT.replace("172.17.0.2@notify                    127.0.0.1:50578", "172.17.0.2@not"),
        TEXT.replace("172.17.0.2@notify  ", "172.17\n.0.2@notify  ", 1),
        TEXT.replace("V5_3_3\n172.17.0.2", "V5_3_3172.17.0.2", 1),
        TEXT.replace("V5_3_3\n172.17.0.2", "V5_\n172.17.0.2", 1),
        TEXT.replace("#ClientAddr", "#Client", 1),
    ],
    ids=["cut", "broken", "joined", "a version cut", "header"],
)
def test_a_list_with_a_refused_row_is_partial(damaged: str) -> None:
    results = parse_consumer_connection(damaged, "f")
    assert not facts(results, "group_connection")
    members = facts(results, "member")
    assert all(member["partial"] for member in members)
    known = {"172.17.0.3@notify", "172.17.0.2@notify"}
    assert {member["client_id"] for member in members} <= known


def squeezed(text: str) -> str:
    return re.sub(" +", " ", text)


@pytest.mark.parametrize(
    "left", ["notify", "@notify", ".17.0.3@notify", "2.17.0.3@notify", "17.0.3@notify"]
)
def test_an_id_that_lost_its_beginning_where_no_padding_shows_it(left: str) -> None:
    """Its own address, or the other ids of the table, show it."""
    own = TEXT.replace("127.0.0.1:50582", "172.17.0.3:50582")
    results = parse_consumer_connection(squeezed(own).replace("172.17.0.3@notify", left), "f")
    assert codes(results) == ["UNPARSABLE_LINE"]
    members = facts(results, "member")
    assert [one["client_id"] for one in members] == ["172.17.0.2@notify"] * 2
    assert all(one["partial"] and one["unpadded"] for one in members)
    assert not facts(results, "group_connection")


@pytest.mark.parametrize(
    ("address", "whole"),
    [
        ("127.0.1:50582", False),
        ("7.0.0.1:50582", True),
        ("2001:db8::1:50582", True),
        ("host-1:50582", True),
    ],
)
def test_an_address_of_digits_and_points_has_four_numbers(address: str, whole: bool) -> None:
    text = squeezed(TEXT).replace("127.0.0.1:50582", address)
    results = parse_consumer_connection(text, "f")
    assert (codes(results) == []) == whole
    assert any(one["client_addr"] == address for one in facts(results, "member")) == whole


@pytest.mark.parametrize("client_id", ["172.17.0.3@notify", "host-3@notify", "::1@notify"])
def test_ids_of_a_table_without_padding(client_id: str) -> None:
    text = squeezed(TEXT).replace("172.17.0.3@notify", client_id)
    results = parse_consumer_connection(text, "f")
    assert codes(results) == []
    assert facts(results, "member")[0]["client_id"] == client_id
    named = text.replace(client_id, "one").replace("172.17.0.2@notify", "two")
    assert codes(parse_consumer_connection(named, "f")) == []


def test_what_a_shell_prints_around_an_output_is_no_row_of_it() -> None:
    before = "[root@host-1 ~]# sh mqadmin consumerConnection -g notify\nspawn ssh host-1\n"
    after = "[root@host-1 ~]# exit\nreal\t0m1.546s\nuser\t0m2.100s\nbye bye\n"
    results = parse_consumer_connection(before + TEXT + after, "f")
    members = facts(results, "member")
    assert members == facts(parse_consumer_connection(TEXT, "f"), "member")
    assert facts(results, "group_connection")
    assert codes(results) == ["STRAY_LINE", "STRAY_LINE"]


@pytest.mark.parametrize(
    "torn",
    [
        TEXT.replace("orders               *", "orders"),
        TEXT.replace("*\n%RETRY%notify        *", "*%RETRY%notify        *"),
    ],
)
def test_topics_of_a_torn_table_are_not_known(torn: str) -> None:
    members = facts(parse_consumer_connection(torn, "f"), "member")
    assert [member["subscriptions"] for member in members] == [()] * 3


def test_a_cut_output() -> None:
    results = parse_consumer_connection(TEXT[:150], "f")
    assert codes(results) == ["UNPARSABLE_LINE", "UNPARSABLE_DOCUMENT"]
    results = parse_consumer_connection(TEXT[:160], "f")
    [member] = facts(results, "member")
    assert (member["consume_type"], member["subscriptions"]) == (None, ())
    assert member["partial"]
    assert not facts(results, "group_connection")
    last = codes(parse_consumer_connection(TEXT[:-5], "f"))
    assert last == ["UNPARSABLE_LINE", "UNPARSABLE_DOCUMENT"]


def test_another_table_is_distinguished() -> None:
    text = "#Index     #ClientId                                #Version\n1 a V5_3_3\n"
    assert codes(parse_consumer_connection(text, "f")) == ["WRONG_FILE", "UNPARSABLE_LINE"]


def test_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-consumerConnection", parse_consumer_connection)
    assert counts["files"] >= 1
    assert counts["member"] > counts["files"]
    assert counts["group_connection"] + counts["no_members"] == counts["files"]


S_5 = """\
#Topic                                                            #Broker Name                      #QID  #Broker Offset        #Consumer Offset      #Client IP           #Diff                #Inflight           #LastTime
%RETRY%notify                                                     broker-a                          0     0                     0                     N/A                  0                    0                    N/A
orders                                                            broker-a                          3     12                    3                     10.0.2.12            9                    2                    2026-11-21 03:50:23

Consume TPS: 0.63
Consume Diff Total: 9
Consume Inflight Total: 2
"""  # noqa: E501 - the columns are upstream's
PLAIN_5 = """\
#Topic                                                            #Broker Name                      #QID  #Broker Offset        #Consumer Offset      #Diff                #Inflight           #LastTime
orders                                                            broker-b                          0     17                    17                    0                    0                    2026-11-21 03:50:23

Consume TPS: 0.00
Consume Diff Total: 0
Consume Inflight Total: 0
"""  # noqa: E501 - the columns are upstream's
S_4 = """\
#Topic                                                            #Broker Name                      #QID  #Broker Offset        #Consumer Offset      #Client IP           #Diff                 #LastTime
TRADE                                                             mq-east                           2     7                     7                     172.16.7.1           0                     2026-11-21 03:38:00

Consume TPS: 0.77
Diff Total: 0
"""  # noqa: E501 - the columns are upstream's
PLAIN_4 = """\
#Topic                                                            #Broker Name                      #QID  #Broker Offset        #Consumer Offset      #Diff                 #LastTime
TRADE                                                             mq-north                          4     0                     0                     0                     N/A
"""  # noqa: E501 - the columns are upstream's
ALL = """\
#Group                                                            #Count  #Version                 #Type  #Model          #TPS     #Diff Total
batch-loader                                                      0       OFFLINE                                         0        120
click-agg                                                         1       V5_3_3                   PUSH   CLUSTERING      0        0
GID_lite                                                          1       V4_9_7                   PULL                   2        -3
"""  # noqa: E501 - the columns are upstream's
AT = 1795233023000  # 2026-11-21 03:50:23 UTC


def test_with_clients_5_x() -> None:
    results = parse_consumer_progress(S_5, "f")
    retry, orders = facts(results, "queue_progress")
    assert orders == {
        "topic": "orders",
        "topic_truncated": False,
        "broker_name": "broker-a",
        "broker_name_truncated": False,
        "queue_id": 3,
        "broker_offset": 12,
        "consumer_offset": 3,
        "diff": 9,
        "inflight": 2,
        "last_time_ms": AT,
        "with_clients": True,
        "client_ip": "10.0.2.12",
    }
    assert (retry["client_ip"], retry["last_time_ms"]) == (None, None)
    totals = [(row["name"], row["total"]) for row in facts(results, "progress_total")]
    assert totals == [("consume_tps", 0.63), ("diff", 9.0), ("inflight", 2.0)]
    assert results[1].source == "f:3"


@pytest.mark.parametrize(
    ("text", "with_clients", "client", "inflight"),
    [
        (PLAIN_5, False, None, 0),
        (S_4, True, "172.16.7.1", None),
        (PLAIN_4, False, None, None),
    ],
    ids=["5.x", "4.9 with clients", "4.9"],
)
def test_the_other_shapes(text: str, with_clients: bool, client: str, inflight: int) -> None:
    results = parse_consumer_progress(text, "f")
    [row] = facts(results, "queue_progress")
    assert (row["with_clients"], row["client_ip"]) == (with_clients, client)
    assert row["inflight"] == inflight
    assert codes(results) == ([] if "Total: " in text else ["UNPARSABLE_DOCUMENT"])


def test_all_groups() -> None:
    offline, push, pull = facts(parse_consumer_progress(ALL, "f"), "group_progress")
    assert (offline["members"], offline["version"], offline["diff"]) == (0, None, 120)
    assert (push["version"], push["consume_type"]) == ("V5_3_3", "PUSH")
    assert (pull["message_model"], pull["consume_type"], pull["diff"]) == (None, "PULL", -3)


def test_the_time_zone_is_of_the_admin_machine() -> None:
    zone = ZoneInfo("America/New_York")
    [row] = facts(parse_consumer_progress(PLAIN_5, "f", time_zone=zone), "queue_progress")
    assert row["last_time_ms"] == AT + 5 * 3_600_000


def test_names_that_fill_their_columns_may_be_cut() -> None:
    row = f"{'t' * 64}  {'b' * 32}  0     1                     1                     0"
    text = PLAIN_5.splitlines()[0] + f"\n{row}                    0                    N/A\n"
    [queue] = facts(parse_consumer_progress(text, "f"), "queue_progress")
    assert (queue["topic_truncated"], queue["broker_name_truncated"]) == (True, True)
    assert (queue["topic"], queue["broker_name"]) == ("t" * 64, "b" * 32)


def narrowed(text: str) -> str:
    """The first column 32 wide, as 4.9.2 and before print it."""
    return "\n".join(line[:32] + line[64:] for line in text.split("\n"))


def test_4_9_2_and_before_have_narrower_columns() -> None:
    text = narrowed((S_4 + PLAIN_4).replace(f"TRADE{' ' * 27}", "t" * 32))
    queues = facts(parse_consumer_progress(text, "f"), "queue_progress")
    assert [(row["topic"], row["topic_truncated"]) for row in queues] == [("t" * 32, True)] * 2
    assert [row["client_ip"] for row in queues] == ["172.16.7.1", None]
    groups = facts(parse_consumer_progress(narrowed(ALL), "f"), "group_progress")
    assert groups == facts(parse_consumer_progress(ALL, "f"), "group_progress")


def test_a_broker_with_a_space_in_its_name() -> None:
    text = PLAIN_5.replace("broker-b ", "broker b ")
    [queue] = facts(parse_consumer_progress(text, "f"), "queue_progress")
    assert queue["broker_name"] == "broker b"


def test_a_client_address_wider_than_its_column() -> None:
    address = "2001:0db8:85a3:0000:0000:8a2e:0370:7334"
    text = S_5.replace("10.0.2.12            9", f"{address} 9")
    assert facts(parse_consumer_progress(text, "f"), "queue_progress")[1]["client_ip"] == address


def test_a_decimal_comma_of_the_admin_s_locale() -> None:
    text = S_5.replace("0.63", "0,63")
    assert facts(parse_consumer_progress(text, "f"), "progress_total")[0]["total"] == 0.63


def test_crlf_colours_and_noise_change_nothing() -> None:
    plain = facts(parse_consumer_progress(S_5, "f"), "queue_progress")
    noisy = NOISE + "\x1b[0m" + S_5.replace("\n", "\r\n")
    assert facts(parse_consumer_progress(noisy, "f"), "queue_progress") == plain


def test_bad_rows_are_refused_by_name() -> None:
    assert codes(parse_consumer_progress(S_5.replace(" 12   ", " 1x   "), "f")) == ["BAD_NUMBER"]
    assert codes(parse_consumer_progress(S_5.replace(" 12   ", " 13   "), "f")) == ["BAD_NUMBER"]
    assert codes(parse_consumer_progress(S_5.replace("03:50:23", "03:5"), "f")) == ["BAD_TIME"]
    assert codes(parse_consumer_progress(S_5.replace("03:50:23", "25:50:23"), "f")) == ["BAD_TIME"]


def test_a_row_that_is_missing_shows_in_the_total() -> None:
    results = parse_consumer_progress(
        S_5.replace("\norders", "\n#", 1).replace("\n#", "\nSLF4J: "), "f"
    )
    assert codes(results) == ["UNPARSABLE_LINE"]
    assert all(row["partial"] for row in facts(results, "queue_progress"))


def test_a_refused_row_makes_every_topic_partial() -> None:
    results = parse_consumer_progress(S_5.replace(" 12   ", " 1x   "), "f")
    assert [row["partial"] for row in facts(results, "queue_progress")] == [True]


def unexpanded(line: str) -> str:
    """Return the line as ``unexpand -a`` writes it."""
    blocks = [line[at : at + 8] for at in range(0, len(line), 8)]
    return "".join(
        f"{block.rstrip(' ')}\t" if len(block) == 8 and block.endswith("  ") else block
        for block in blocks
    )


def test_tabs_of_unexpand_are_blanks_up_to_a_multiple_of_eight() -> None:
    plain = facts(parse_consumer_progress(S_5, "f"), "queue_progress")
    text = "\n".join(map(unexpanded, S_5.split("\n")))
    assert "\t  " in text
    assert facts(parse_consumer_progress(text, "f"), "queue_progress") == plain


def test_columns_by_their_titles_whatever_parts_them() -> None:
    plain = facts(parse_consumer_progress(S_5, "f"), "queue_progress")
    for text in (" ".join(S_5.split(" ")), S_5.replace("  ", "\t"), re.sub(" +", " ", S_5)):
        assert facts(parse_consumer_progress(text, "f"), "queue_progress") == plain
    titles = [match.start() for match in re.finditer("#", S_5.split("\n")[0])]
    order = [5, 0, 1, 2, 3, 4, 6, 7, 8]
    moved = "\n".join(
        "".join(line.ljust(240)[a:b] for a, b in [[*pairwise([*titles, 240])][n] for n in order])
        if n < 3
        else line
        for n, line in enumerate(S_5.split("\n"))
    )
    assert facts(parse_consumer_progress(moved, "f"), "queue_progress") == plain


QUEUES = [("orders", "broker-a", 0), ("orders", "broker-b", 0), ("orders", "broker-b", 1)]


def rows_of(*queues: tuple[str, str, int]) -> str:
    """consumerProgress of these queues, its blanks squeezed."""
    head = S_5.split("\n")[0]
    rows = [f"{topic} {broker} {n} 12 12 10.0.2.12 0 0 N/A" for topic, broker, n in queues]
    ends = ["Consume TPS: 0.63", "Consume Diff Total: 0", "Consume Inflight Total: 0"]
    return squeezed("\n".join([head, *rows, *ends, ""]))


@pytest.mark.parametrize("torn", [("ers", "broker-b", 2), ("orders", "oker-b", 2)])
def test_a_queue_whose_name_lost_characters_where_no_padding_shows_it(
    torn: tuple[str, str, int],
) -> None:
    results = parse_consumer_progress(rows_of(*QUEUES, torn), "f")
    assert codes(results) == ["UNPARSABLE_LINE"]
    queues = facts(results, "queue_progress")
    assert len(queues) == 3
    assert all(one["partial"] for one in queues)


@pytest.mark.parametrize(
    "own", [("order", "broker-b", 1), ("trade", "broker-b", 2), ("orders", "broker-c", 2)]
)
def test_a_queue_of_its_own(own: tuple[str, str, int]) -> None:
    assert codes(parse_consumer_progress(rows_of(*QUEUES, own), "f")) == []


def test_a_cut_file_loses_only_its_last_row() -> None:
    head, row = PLAIN_5.splitlines()[:2]
    cut = f"{head}\n{row}\n{row[:150]}"
    results = parse_consumer_progress(cut, "f")
    assert codes(results) == ["UNPARSABLE_LINE", "UNPARSABLE_DOCUMENT"]
    assert len(facts(results, "queue_progress")) == 1


def test_rows_without_their_header_are_refused() -> None:
    assert codes(parse_consumer_progress(S_5.splitlines()[2] + "\n", "f")) == ["UNPARSABLE_LINE"]


def test_consumer_progress_another_table_is_distinguished() -> None:
    text = "#Broker Name                      #QID  #Min Offset           #Max Offset\n"
    assert codes(parse_consumer_progress(text, "f")) == ["WRONG_FILE"]


def test_a_failure_and_nothing() -> None:
    assert kinds(parse_consumer_progress(NO_BROKER, "f")) == ["admin_error"]
    assert kinds(parse_consumer_progress("", "f")) == ["no_output"]


def test_consumer_progress_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-consumerProgress", parse_consumer_progress)
    assert counts["files"] >= 1
    assert counts["queue_progress"] > 5 * counts["files"]


def test_what_is_logged_around_a_failure_is_no_row_of_a_table() -> None:
    text = "[2025-12-18 10:00:00.357] WARN QueryGroup_2 - failed\n" + NO_BROKER
    assert codes(parse_consumer_progress(text, "f")) == ["STRAY_LINE"]
