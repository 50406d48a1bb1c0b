"""Rows of mqadmin's tables by their header."""

import pytest

from rebalance_core.ingest.fact import Unreadable
from rebalance_core.ingest.parse.headed_tables import WORD, WORDS, Column, HeadedTable

COLUMNS = {
    "Id": Column(WORDS, 1, what="an id"),
    "Addr": Column(r"\S+:\d{1,5}", 1, what="an address"),
    "Kind": Column(r"[A-Z]+", 1, what="a kind"),
}
HEADER = f"{'#Id':<12} {'#Addr':<14} #Kind"
ROW = f"{'a b@1':<12} {'1.1.1.1:5':<14} JAVA"
VALUES = {"Id": "a b@1", "Addr": "1.1.1.1:5", "Kind": "JAVA"}


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (HEADER, ROW),
        (f"{HEADER}   #LastBeat", f"{ROW}   2026-11-21 03:40:00"),
        (
            f"{'#Id':<12} {'#Zone':<10} {'#Addr':<14} #Kind",
            f"{'a b@1':<12} {'east 1':<10} {'1.1.1.1:5':<14} JAVA",
        ),
        (f"{'#Kind':<9} {'#Id':<12} #Addr", f"{'JAVA':<9} {'a b@1':<12} 1.1.1.1:5"),
        ("#Id #Addr #Kind", "a b@1 1.1.1.1:5 JAVA"),
        ("#Id #Addr #Kind", ROW),
        ("#Id  #Addr  #Kind", "a b@1  1.1.1.1:5  JAVA"),
        (f"  {HEADER}", f"  {ROW}"),
        ("#Id #Seen #Addr #Kind #Seen too", "a b@1 2026-11-21 03:40:00 1.1.1.1:5 JAVA x y"),
    ],
    ids=[
        "printed",
        "added at the end",
        "added in the middle",
        "moved",
        "squeezed",
        "only the header squeezed",
        "tabs",
        "indented",
        "added and squeezed",
    ],
)
def test_columns_are_found_by_their_titles(header: str, row: str) -> None:
    assert HeadedTable(header, COLUMNS).read(row) == VALUES


@pytest.mark.parametrize("end", range(len(ROW)))
def test_no_row_that_was_cut_is_read_as_another(end: int) -> None:
    table = HeadedTable(HEADER, COLUMNS)
    if ROW[:end].split() == ROW.split():
        return
    try:
        values = table.read(ROW[:end])
    except Unreadable:
        return
    # a word that nothing ends may be a part of one: narrower forms tell
    assert values | {"Kind": "JAVA"} == VALUES


@pytest.mark.parametrize("at", range(1, len(ROW) - 4))
def test_neither_half_of_a_broken_row_is_a_row(at: int) -> None:
    table = HeadedTable(HEADER, COLUMNS)
    for half in (ROW[:at], ROW[at:]):
        if half.split() != ROW.split():
            with pytest.raises(Unreadable):
                table.read(half)


@pytest.mark.parametrize("begin", range(1, len(ROW) - 4))
def test_no_row_that_lost_its_beginning_is_read(begin: int) -> None:
    with pytest.raises(Unreadable):
        HeadedTable(HEADER, COLUMNS).read(ROW[begin:])


def test_a_row_that_stands_below_its_titles_is_read_behind_a_refused_one() -> None:
    table = HeadedTable(HEADER, COLUMNS)
    with pytest.raises(Unreadable):
        table.read("a b")
    wide = f"{'a wider one@1'} {'1.1.1.1:5':<14} JAVA"
    assert table.read(wide)["Id"] == "a wider one@1"
    assert table.read(ROW) == VALUES


def test_a_refusal_has_the_code_of_the_value_that_is_wrong() -> None:
    columns = {"Name": Column(WORD), "Id": Column(r"\d+", code="BAD_NUMBER", what="a number")}
    with pytest.raises(Unreadable, match="#Id is '1x', not a number") as refused:
        HeadedTable("#Name     #Id", columns).read("n         1x")
    assert refused.value.code == "BAD_NUMBER"


def test_a_row_of_any_length_is_refused_in_time() -> None:
    table = HeadedTable("#Id #A #Addr #B #Kind", COLUMNS)
    for text in ("a " * 500_000, " " * 1_000_000, "a" * 1_000_000, "1:1 " * 250_000):
        with pytest.raises(Unreadable):
            table.read(text + "?")


def test_a_name_in_quotation_marks_is_refused() -> None:
    columns = {"Topic": Column(WORD, 1, what="a topic"), "Kind": Column(r"[A-Z]+", 1, what="kind")}
    table = HeadedTable("#Topic   #Kind", columns)
    assert table.read("T1       JAVA") == {"Topic": "T1", "Kind": "JAVA"}
    with pytest.raises(Unreadable):
        table.read('"T1"     JAVA')
