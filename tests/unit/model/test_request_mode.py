"""The text of a request mode."""

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import pop_retry_topics
from rebalance_core.model.request_mode import can_be_popped, parse_request_mode


@pytest.mark.parametrize("text", ["PULL", "POP(share_queue_num=0)", "POP(share_queue_num=-1)"])
def test_texts_round_trip(text: str) -> None:
    assert str(parse_request_mode(text)) == text


def test_what_is_popped() -> None:
    assert parse_request_mode("POP(share_queue_num=2)").share_queue_num == 2
    assert not parse_request_mode("PULL").is_pop
    assert can_be_popped("T")
    assert not can_be_popped("%RETRY%g")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "POP",
        "pull",
        "POP()",
        "POP(share_queue_num=)",
        "POP(share_queue_num=x)",
        "POP(share_queue_num=2147483648)",
        "POP(share_queue_num=1) ",
        "OBSERVED",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a request mode; valid: PULL, POP"):
        parse_request_mode(text)


def test_retry_topics_of_pop_are_distinguished_from_the_group_s() -> None:
    assert pop_retry_topics("g", "T") == ("%RETRY%g_T", "%RETRY%g+T")
