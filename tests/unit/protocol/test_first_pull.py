"""Corrections of the first pull (rocketmq.md §5.5)."""

import pytest

from rebalance_core.protocol.first_pull import first_pull_correction


@pytest.mark.parametrize("version", ["4.9.3", "4.9.4", "5.3.3"])
@pytest.mark.parametrize(
    ("offset", "minimum", "maximum", "corrected"),
    [
        (10, 10, 20, None),
        (20, 10, 20, None),  # at the end: waits
        (9, 10, 20, 10),
        (0, 10, 20, 10),
        (21, 10, 20, 20),
        (10, 10, 10, None),  # everything deleted
        (11, 10, 10, 10),
        (0, 0, 0, None),
        (5, 0, 0, 0),
    ],
)
def test_an_offset_outside_goes_to_the_nearer_end(
    version: str, offset: int, minimum: int, maximum: int, corrected: int | None
) -> None:
    assert (
        first_pull_correction(
            offset=offset, min_offset=minimum, max_offset=maximum, version=version
        )
        == corrected
    )


@pytest.mark.parametrize(
    ("version", "corrected"), [("4.9.0", 0), ("4.9.3", 0), ("4.9.4", 20), ("5.3.3", 20)]
)
def test_an_overflow_of_a_queue_with_min_zero_replayed_it_until_4_9_3(
    version: str, corrected: int
) -> None:
    assert (
        first_pull_correction(offset=21, min_offset=0, max_offset=20, version=version) == corrected
    )
