from rebalance_core.ingest.parse.mqadmin_topics import TOPIC_STATUS_KINDS, parse_topic_status
from tests.unit.ingest.documents import codes, facts, parse_all
from tests.unit.ingest.parse.mqadmin.test_command_output import NOISE

TEXT = """\
#Broker Name                      #QID  #Min Offset           #Max Offset             #Last Updated
broker-a                          0     0                     12                      2026-11-21 03:50:24,104
broker-c                          3     5                     5                       

Topic Put TPS: 0.0
"""  # noqa: E501, W291 - the columns and their padding are upstream's


def test_queues_and_speed() -> None:
    results = parse_topic_status(TEXT, "f")
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
    stripped = "\r\n".join(line.rstrip() for line in TEXT.split("\n"))
    expected = facts(parse_topic_status(TEXT, "f"), "queue_offsets")
    assert facts(parse_topic_status(NOISE + stripped, "f"), "queue_offsets") == expected


def test_a_name_that_fills_its_column_may_be_cut() -> None:
    text = TEXT.replace(f"{'broker-a':<32}", "b" * 32)
    assert facts(parse_topic_status(text, "f"), "queue_offsets")[0]["broker_name_truncated"] is True


def test_an_offset_cut_in_two_is_not_taken() -> None:
    results = parse_topic_status(TEXT[: TEXT.index("12   ") + 1], "f")
    assert codes(results) == ["UNPARSABLE_LINE"]
    assert facts(results, "queue_offsets") == []


def test_bad_rows_are_refused_by_name() -> None:
    assert codes(parse_topic_status(TEXT.replace(" 12 ", " -  "), "f")) == ["BAD_NUMBER"]
    assert codes(parse_topic_status(TEXT.replace(",104", ""), "f")) == []
    assert codes(parse_topic_status(TEXT.replace("24,104", "2"), "f")) == ["BAD_TIME"]
    assert codes(parse_topic_status("#Topic  #Broker Name\n", "f")) == ["WRONG_FILE"]


def test_every_recording() -> None:
    counts = parse_all(r"mqadmin/\d+-topicStatus", parse_topic_status, TOPIC_STATUS_KINDS)
    assert counts["queue_offsets"] > counts["files"] >= 1
