from rebalance_core.ingest.parse.config_stores import (
    REQUEST_MODE_KINDS,
    parse_message_request_mode_json,
)
from tests.unit.ingest.documents import codes, facts, messages, parse_all

STORE = """{
	"messageRequestModeMap":{
		"PopA":{
			"g1":{"consumerGroup":"g1","mode":"POP","popShareQueueNum":2,"topic":"PopA"},
			"g2":{"consumerGroup":"g2","mode":"PULL","popShareQueueNum":0,"topic":"PopA"}
		},
		"PopS":{"g1":{"consumerGroup":"g1","mode":"POP","popShareQueueNum":-1,"topic":"PopS"}}
	}
}"""


def modes(text: str) -> list[tuple[str, str, str]]:
    found = facts(parse_message_request_mode_json(text, "f"), "request_mode")
    return [(fact["consumer_group"], fact["topic"], fact["mode"]) for fact in found]


def test_a_store() -> None:
    assert modes(STORE) == [
        ("g1", "PopA", "POP(share_queue_num=2)"),
        ("g2", "PopA", "PULL"),
        ("g1", "PopS", "POP(share_queue_num=-1)"),
    ]


def test_nothing_was_ever_set() -> None:
    assert parse_message_request_mode_json('{"messageRequestModeMap":{}}', "f") == []


def test_a_share_that_is_not_written_is_the_default() -> None:
    assert modes(STORE.replace('"popShareQueueNum":2,', ""))[0][2] == "POP(share_queue_num=-1)"


def test_what_is_none_is_refused() -> None:
    unknown = parse_message_request_mode_json(STORE.replace("PULL", "PUSH"), "f")
    assert codes(unknown) == ["BAD_ENTRY"]
    assert "mode of g2 of PopA is 'PUSH', not PULL or POP" in messages(unknown)[0]
    large = STORE.replace(":2,", f":{2**31},")
    assert codes(parse_message_request_mode_json(large, "f")) == ["BAD_NUMBER"]
    assert codes(parse_message_request_mode_json("{}", "f")) == ["WRONG_FILE"]
    assert codes(parse_message_request_mode_json(STORE[:200], "f")) == ["UNPARSABLE_DOCUMENT"]


def test_every_recording() -> None:
    pattern = r"brokers/.*/messageRequestMode\.json$"
    counts = parse_all(pattern, parse_message_request_mode_json, REQUEST_MODE_KINDS)
    assert counts["files"] >= 12
    assert counts["request_mode"] >= 100
