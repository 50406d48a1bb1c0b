from rebalance_core.checks.row_limits import Complaint, RowCounts
from rebalance_core.cli.terminal import RowReport, numbers, rejected_rows, table
from rebalance_core.engine.options import RowForecast
from rebalance_core.model.errors import InputRefused

COUNTS = {"cluster_events": RowCounts(2, 2)}
COMPLAINTS = (Complaint("cluster_events", "A", 2, "f:1", "why"),)


def test_a_refusal_is_told_with_its_exit_code_and_the_rows() -> None:
    report = RowReport(RowForecast(COUNTS, COMPLAINTS, InputRefused("2 of 2\n  A 2, first f:1")))
    assert report.exit_code == 4
    assert report.lines() == [
        "", "bad rows", "  A 2, first f:1: why", "", "A run would end with exit code 4: 2 of 2",
    ]  # fmt: skip
    assert report.facts()["rows"] == {"cluster_events": {"rows": 2, "bad": 2}}


def test_rows_that_let_the_run_go_on_end_with_0() -> None:
    report = RowReport(RowForecast(COUNTS, (), None))
    assert (report.exit_code, report.lines(), report.facts()["refused"]) == (0, [], None)


def test_without_rows_a_refusal_still_has_its_number() -> None:
    forecast = RowForecast(COUNTS, COMPLAINTS, InputRefused("2 of 2\n  secret")).without_rows()
    hidden = RowReport(forecast)
    assert (hidden.exit_code, hidden.facts()["complaints"]) == (4, [])
    assert "secret" not in str((hidden.facts(), hidden.lines()))


def test_columns_of_text_stand_left_and_numbers_right() -> None:
    rows = [["a", "1,000", "x"], ["bcd", "7", "yz"]]
    assert list(table(("of", "count", "why"), rows, text=(0, -1))) == [
        "  of   count  why",
        "  a    1,000  x",
        "  bcd      7  yz",
    ]


def test_numbers_stand_below_each_other_with_their_notes() -> None:
    assert numbers({"groups": 1200, "epochs": 7}, {"epochs": "now"}) == [
        "  groups               1,200",
        "  epochs                   7  now",
    ]
    assert (numbers({}), rejected_rows({})) == ([], [])
