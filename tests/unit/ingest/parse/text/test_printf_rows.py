from rebalance_core.ingest.parse.java_text import PrintfRow

ROW = PrintfRow("%-8s  %-4s %6s %s")


def test_columns_as_wide_as_the_format_says() -> None:
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
