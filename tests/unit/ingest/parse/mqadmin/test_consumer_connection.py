import pytest

from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.parse.mqadmin_consumers import (
    CONNECTION_KINDS,
    parse_consumer_connection,
)
from tests.unit.ingest.documents import codes, facts, kinds, parse_all
from tests.unit.ingest.parse.mqadmin.test_command_output import NO_BROKER, NOISE, NOT_ONLINE

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


def test_an_output_that_ends_in_what_the_jvm_says_tells_nothing() -> None:
    (refused,) = parse_consumer_connection(NOISE, "f")
    assert isinstance(refused, Unread)
    assert refused.code == "UNPARSABLE_DOCUMENT"


def test_a_broker_that_did_not_answer_says_nothing_of_members() -> None:
    results = parse_consumer_connection(NO_BROKER, "f")
    assert kinds(results) == ["admin_error"]


def test_crlf_and_noise_change_nothing() -> None:
    noisy = NOISE + TEXT.replace("\n", "\r\n")
    expected = facts(parse_consumer_connection(TEXT, "f"), "member")
    assert facts(parse_consumer_connection(noisy, "f"), "member") == expected


def test_rows_that_are_none_are_refused() -> None:
    for row in ("172.17.0.3@notify", "x 127.0.0.1 JAVA V5_3_3", "x 127.0.0.1:1 java V5_3_3"):
        text = TEXT.replace(TEXT.splitlines()[1], row)
        results = parse_consumer_connection(text, "f")
        assert codes(results) == ["UNPARSABLE_LINE"], row
        assert len(facts(results, "member")) == 2


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


def test_another_table_is_told_apart() -> None:
    text = "#Index     #ClientId                                #Version\n1 a V5_3_3\n"
    assert codes(parse_consumer_connection(text, "f")) == ["WRONG_FILE", "UNPARSABLE_LINE"]


def test_every_recording() -> None:
    counts = parse_all(
        r"mqadmin/\d+-consumerConnection", parse_consumer_connection, CONNECTION_KINDS
    )
    assert counts["files"] >= 1
    assert counts["member"] > counts["files"]
    assert counts["group_connection"] + counts["no_members"] == counts["files"]
