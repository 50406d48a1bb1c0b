"""Text from outside: nothing hides, nothing reorders, nothing breaks XML or UTF-8."""

import xml.etree.ElementTree as ET
from html import escape

import pytest

from rebalance_core.report.time_text import duration, time_tag
from rebalance_core.report.visible import columns, shortened, visible
from tests.unit.report.audit_reports import HOSTILE


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_any_text_fits_into_xml_and_utf8(text: str) -> None:
    ET.fromstring(f"<a>{escape(visible(text))}</a>".encode())


def test_every_character_fits_into_xml() -> None:
    for plane in range(0, 0x110000, 0x1000):
        text = " ".join(map(chr, range(plane, min(plane + 0x1000, 0x110000))))
        shown = visible(text, None)
        ET.fromstring(f"<a>{escape(shown)}</a>".encode())


def test_plain_names_stay_as_they_are() -> None:
    for name in ("%RETRY%group-1", "10.0.0.1@4711#DEFAULT", "订单", "مجموعة", "Ünï"):
        assert visible(name) == name


def test_piled_up_marks_are_escaped() -> None:
    assert visible("Z" + "\u0301" * 5) == "Z\u0301\u0301\u0301\\u0301\\u0301"


def test_long_text_is_cut_and_marked() -> None:
    assert visible("x" * 2000) == "x" * 1000 + " … (2,000 characters)"


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_shortened_text_fits(text: str) -> None:
    assert columns(shortened(text, 20)) <= 20


def test_times_beyond_the_calendar_are_numbers() -> None:
    assert time_tag(10**18) == "<span>1000000000000000000 ms</span>"
    assert time_tag(None) == "–"


def test_durations_name_two_neighbouring_units() -> None:
    assert duration(86_400_000 + 60_000) == "1 d"
    assert duration(0) == "0 ms"
