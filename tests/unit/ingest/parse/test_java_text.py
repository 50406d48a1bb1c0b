"""Texts as Java writes them: times, zones, printf rows."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from rebalance_core.ingest.parse.log_lines import Clock
from rebalance_core.ingest.parse.printf_rows import PrintfRow


def ms(year: int, month: int, day: int, hour: int, minute: int) -> int:
    return int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()) * 1000


def test_servers_write_gmt_plus_8() -> None:
    assert Clock().second_ms("2026-11-21 08:00:00") == ms(2026, 11, 21, 0, 0)


def test_the_hour_that_happens_twice_follows_from_the_order_of_lines() -> None:
    clock = Clock(ZoneInfo("America/New_York"))
    assert clock.second_ms("2026-11-01 01:30:00") == ms(2026, 11, 1, 5, 30)
    assert clock.second_ms("2026-11-01 01:59:00") == ms(2026, 11, 1, 5, 59)
    assert clock.second_ms("2026-11-01 01:05:00") == ms(2026, 11, 1, 6, 5)


def test_a_clock_that_is_set_back_is_taken_at_its_word() -> None:
    clock = Clock()
    assert clock.second_ms("2026-11-21 08:10:00") == ms(2026, 11, 21, 0, 10)
    assert clock.second_ms("2026-11-21 08:00:00") == ms(2026, 11, 21, 0, 0)


@pytest.mark.parametrize(
    "text",
    ["", "2026-11-21T08:00:00", "2026-02-30 08:00:00", "1970-01-01 00:00:00", "9999-01-01 00:00:00",
     "2026-11-21 08:00:0x", "２０２６-11-21 08:00:00"],
)  # fmt: skip
def test_what_is_no_time_is_none(text: str) -> None:
    assert Clock().second_ms(text) is None


ROW = PrintfRow("%-8s  %-4s %6s %s")


def test_columns_as_wide_as_the_format_has_it() -> None:
    assert ROW.read("orders    0        12 last words") == ["orders", "0", "12", "last words"]


def test_a_value_may_hold_spaces_and_may_be_missing() -> None:
    assert ROW.read("a b  c    0        12 x") == ["a b  c", "0", "12", "x"]
    assert ROW.read("orders             12") == ["orders", "", "12", ""]
    assert ROW.read("") == ["", "", "", ""]


def test_a_value_that_is_too_wide_moves_the_rest() -> None:
    assert ROW.read("a-long-name  0        12 x") == ["a-long-name", "0", "12", "x"]
    assert ROW.read("a-long-name  12345     12 x") == ["a-long-name", "12345", "12", "x"]
    assert ROW.read("orders    0    12345678 x") == ["orders", "0", "12345678", "x"]


def test_a_value_that_fills_its_column_exactly() -> None:
    assert ROW.read("12345678  0        12 x")[0] == "12345678"
    assert ROW.read("123456789  0        12 x")[0] == "123456789"


def test_padding_at_the_end_may_be_gone() -> None:
    assert ROW.read("orders    0") == ["orders", "0", "", ""]
