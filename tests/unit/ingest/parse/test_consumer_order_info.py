"""Stores of ordered POP of 5.5.0, and what OrderInfo.needBlock makes of them."""

import pytest

from rebalance_core.ingest.parse.offset_stores import parse_consumer_order_info_json
from tests.unit.ingest.documents import codes, facts, messages, parse_all

# From the recording `grpc`.
BODY = (
    '"a":"b0b21a8f","cm":{cm},"i":60000,"l":1795331726353,"o":[{o}],"oc":{{}},'
    '{ot}"popTime":1795331726353'
)
POP_MS, INVISIBLE_MS = 1_795_331_726_353, 60_000


def store(cm: int = 0, o: str = "150", ot: str = "") -> str:
    body = BODY.format(cm=cm, o=o, ot=f'"ot":{{{ot}}},' if ot else "")
    return '{"orderInfoCount":1,"table":{"GF@g-fifo":{0:{' + body + "}}}}"


def order(text: str) -> dict[str, object]:
    (fact,) = facts(parse_consumer_order_info_json(text, "f"), "order_info")
    return dict(fact)


def test_a_queue_that_waits_for_a_renewed_message() -> None:
    assert order(store(ot="150:1795331837481")) == {
        "consumer_group": "g-fifo",
        "topic": "GF",
        "queue_id": 0,
        "attempt_id": "b0b21a8f",
        "commit_bits": 0,
        "offsets": [150],
        "pop_ms": POP_MS,
        "invisible_ms": INVISIBLE_MS,
        "next_visible_ms": 1795331837481,
        "blocked_until_ms": 1795331837481,
    }


@pytest.mark.parametrize(
    ("cm", "ot", "until"),
    [
        (0b11111111, "", None),
        (0, "", POP_MS + INVISIBLE_MS),
        (0b001, "150:9,152:1795331999999", 1795331999999),
        (0b101, "150:9,152:1795331999999", POP_MS + INVISIBLE_MS),
        (0b110, "150:9", 9),
    ],
)
def test_until_the_latest_message_that_is_not_acknowledged(
    cm: int, ot: str, until: int | None
) -> None:
    """The first offset is absolute, the others are counted from it."""
    found = order(store(cm, "150,1,2", ot))
    assert found["offsets"] == [150, 151, 152]
    assert found["blocked_until_ms"] == until


def test_an_older_version_without_invisible_time_or_attempt() -> None:
    found = order(store().replace('"i":60000,', "").replace('"a":"b0b21a8f",', ""))
    assert (found["attempt_id"], found["blocked_until_ms"]) == (None, None)


def test_what_is_none_is_refused() -> None:
    no_group = parse_consumer_order_info_json(store().replace("@", ""), "f")
    assert codes(no_group) == ["BAD_ENTRY"]
    assert "'GFg-fifo' is not <topic>@<group>" in messages(no_group)[0]
    odd = store(o='"x"')
    assert codes(parse_consumer_order_info_json(odd, "f")) == ["BAD_NUMBER"]
    queues = (f"{n}:{{{BODY.format(cm=0, o=o, ot='')}}}" for n, o in enumerate(('"x"', "150")))
    results = parse_consumer_order_info_json(f'{{"table":{{"GF@g":{{{",".join(queues)}}}}}}}', "f")
    assert codes(results) == ["BAD_NUMBER"]
    assert [fact["queue_id"] for fact in facts(results, "order_info")] == [1], "it is read"
    assert codes(parse_consumer_order_info_json("{}", "f")) == ["WRONG_FILE"]
    assert codes(parse_consumer_order_info_json(store()[:60], "f")) == ["UNPARSABLE_DOCUMENT"]


def test_the_recording() -> None:
    pattern = r"brokers/.*/consumerOrderInfo\.json$"
    counts = parse_all(pattern, parse_consumer_order_info_json)
    assert counts["files"] >= 8
    assert counts["order_info"] >= 16
