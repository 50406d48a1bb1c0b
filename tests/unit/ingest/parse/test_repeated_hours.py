"""The hour that a zone lives twice, in texts known to have been read at a moment."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from rebalance_core.ingest.parse.mqadmin_times import dashed_ms, packed_ms
from rebalance_core.ingest.parse.zones import ReadAt

BERLIN = ZoneInfo("Europe/Berlin")  # its clocks went from 03:00 to 02:00 at 01:00 UTC that day
ENDED = "2026-10-25"


def utc_ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("read_at", "text", "meant"),
    [
        (f"{ENDED} 00:30:00", f"{ENDED} 02:29:59", f"{ENDED} 00:29:59"),
        (f"{ENDED} 01:30:00", f"{ENDED} 02:29:59", f"{ENDED} 01:29:59"),
        (f"{ENDED} 01:30:00", f"{ENDED} 02:31:00", f"{ENDED} 00:31:00"),
        (f"{ENDED} 01:30:00", f"{ENDED} 01:59:59", "2026-10-24 23:59:59"),
        (f"{ENDED} 03:00:00", f"{ENDED} 03:00:00", f"{ENDED} 02:00:00"),
        ("2026-07-01 12:00:00", "2026-07-01 14:00:00", "2026-07-01 12:00:00"),
    ],
)
def test_the_pass_of_a_repeated_hour(read_at: str, text: str, meant: str) -> None:
    zone = ReadAt(BERLIN, utc_ms(read_at))
    assert dashed_ms(text, zone) == utc_ms(meant)
    packed = "".join(mark for mark in text if mark.isdecimal()) + "000"
    assert packed_ms(packed, zone) == utc_ms(meant)


def test_an_hour_that_is_left_out_is_read_as_the_plain_zone_reads_it() -> None:
    for text in ("2027-03-28 01:59:59", "2027-03-28 02:30:00", "2027-03-28 03:00:00"):
        assert dashed_ms(text, ReadAt(BERLIN, 2**50)) == dashed_ms(text, BERLIN)
