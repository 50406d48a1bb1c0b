"""The timestamp of CONSUME_FROM_TIMESTAMP as a client writes it: local time, to the second."""

import pytest

from rebalance_core.contracts.times import TIME_RANGES
from rebalance_core.ingest.settings.group_settings_row import local_seconds_ms


@pytest.mark.parametrize(
    ("text", "zone", "at_ms"),
    [
        ("20261121030558", "UTC", 1_795_230_358_000),
        ("20261121110558", "Asia/Shanghai", 1_795_230_358_000),
        ("19700101000000", "UTC", 0),
        ("19700101000000", "Asia/Shanghai", 0),  # "from the beginning"
        ("00010101000000", "UTC", 0),
        ("99991231235959", "America/Los_Angeles", 253_402_329_599_000),
        ("2026", "UTC", None),
        (None, "UTC", None),
    ],
)
def test_a_consume_timestamp_is_one_that_the_input_may_have(
    text: str | None, zone: str, at_ms: int | None
) -> None:
    assert local_seconds_ms(text, zone) == at_ms
    good = TIME_RANGES["consume_timestamp_ms"]
    assert at_ms is None or good.first_ms <= at_ms < good.end_ms
