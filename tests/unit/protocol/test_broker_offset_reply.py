"""The broker's answer for an offset never committed (rocketmq.md §5.3)."""

import pytest

from rebalance_core.protocol.broker_offset_reply import broker_offset_reply

OLD, NEW = "5.0.0", "5.1.0"


def reply(
    version: str,
    *,
    committed: int | None = None,
    minimum: int | None = 0,
    maximum: int | None = 10,
    cached: bool | None = True,
    zero: bool = True,
) -> int | None:
    return broker_offset_reply(
        committed_offset=committed,
        min_offset=minimum,
        max_offset=maximum,
        head_cached=cached,
        set_zero_if_not_found=zero,
        version=version,
    )


@pytest.mark.parametrize("version", ["4.9.7", OLD, NEW, "5.3.3"])
class TestEveryVersion:
    def test_a_commit_is_the_answer_even_zero(self, version: str) -> None:
        assert reply(version, committed=7, minimum=9, zero=False) == 7
        assert reply(version, committed=0, minimum=9) == 0

    def test_a_queue_with_deleted_messages_is_not_found(self, version: str) -> None:
        assert reply(version, minimum=1) is None

    def test_a_request_that_forbids_zero_gets_not_found(self, version: str) -> None:
        assert reply(version, zero=False) is None

    def test_a_young_queue_in_memory_answers_zero(self, version: str) -> None:
        assert reply(version) == 0
        assert reply(version, cached=None) == 0

    def test_a_head_out_of_memory_is_not_found(self, version: str) -> None:
        assert reply(version, cached=False) is None


@pytest.mark.parametrize(
    ("version", "answer"), [("4.9.7", 0), (OLD, 0), (NEW, None), ("5.3", None)]
)
@pytest.mark.parametrize("cached", [True, False, None])
def test_an_empty_queue_answered_zero_until_5_1_0(
    version: str, answer: int | None, cached: bool | None
) -> None:
    assert reply(version, maximum=0, cached=cached) == answer
    assert reply(version, minimum=None, maximum=None, cached=cached) == answer
