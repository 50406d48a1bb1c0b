"""The broker's rule for the first pop of a queue without a commit (rocketmq.md §2.8).

Read in ``PopMessageProcessor`` of 5.0.0, 5.1.0, 5.1.1, 5.1.3, 5.1.4, 5.2.0 to 5.5.0; run on 5.3.3
and 5.5.0 (`tests.cases.test_pop_starts`).
"""

import pytest

from rebalance_core.protocol.pop_start import first_pop_offset, pops_from_min


@pytest.mark.parametrize(
    ("least", "end", "cached", "version", "rule", "offset"),
    [
        (0, 9, None, "5.0.0", "POP_LAST", 8),
        (0, 9, True, "5.1.3", "POP_LAST", 8),
        (0, 9, True, "5.1.4", "POP_ZERO", 0),
        (0, 9, None, "5.5.0", "POP_ZERO", 0),
        (0, 9, False, "5.5.0", "POP_LAST", 8),
        (3, 9, True, "5.5.0", "POP_LAST", 8),
        (0, 0, None, "5.5.0", "POP_LAST", 0),
    ],
)
def test_under_max_the_last_message_or_zero_from_memory(
    least: int, end: int, cached: bool | None, version: str, rule: str, offset: int
) -> None:
    answer = first_pop_offset(
        from_min=False, min_offset=least, max_offset=end, head_cached=cached, version=version
    )
    assert answer == (rule, offset)


def test_under_min_the_minimum_whatever_the_version() -> None:
    answers = {
        first_pop_offset(
            from_min=True, min_offset=3, max_offset=9, head_cached=None, version=version
        )
        for version in ("5.0.0", "5.1.4", "5.5.0")
    }
    assert answers == {("POP_MIN", 3)}


def test_a_proxy_always_sends_max() -> None:
    assert not pops_from_min("PROXY", "CONSUME_FROM_FIRST_OFFSET")
    assert not pops_from_min("BROKER", "CONSUME_FROM_TIMESTAMP")
    assert pops_from_min("BROKER", "CONSUME_FROM_FIRST_OFFSET")
