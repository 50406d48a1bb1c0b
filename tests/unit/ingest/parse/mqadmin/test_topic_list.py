from rebalance_core.ingest.parse.mqadmin_topics import TOPIC_LIST_KINDS, parse_topic_list
from tests.unit.ingest.documents import codes, facts, parse_all

TEXT = f"""\
#Cluster Name         #Topic                                            #Consumer Group                                 
DefaultCluster        {"RMQ_SYS_TRANS_HALF_TOPIC":<64}  {"":<64}
DefaultCluster        {"payments":<64}  {"pay-service":<64}
"""  # noqa: E501, W291 - the columns and their padding are upstream's


def test_topics_and_who_consumes_them() -> None:
    system, payments = facts(parse_topic_list(TEXT, "f"), "topic")
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
    text = TEXT.replace(f"{'payments':<64}", "t" * 64)
    assert facts(parse_topic_list(text, "f"), "topic")[1]["topic_truncated"] is True


def test_what_is_no_list_is_refused() -> None:
    assert codes(parse_topic_list("#Broker Name\n", "f")) == ["WRONG_FILE"]
    assert codes(parse_topic_list("two words\n", "f")) == ["UNPARSABLE_LINE"]
    assert codes(parse_topic_list("payments\norde", "f")) == ["UNPARSABLE_LINE"]


def test_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-topicList", parse_topic_list, TOPIC_LIST_KINDS)
    assert counts["topic"] > counts["files"] >= 1
