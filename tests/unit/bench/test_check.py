"""Ratios of a run against those that are checked in."""

from typing import Any

import pytest

from tests.bench.check import compare
from tests.bench.report import LESS, MORE, Figure, Report, report_of


def results(*figures: Figure) -> dict[str, Any]:
    report = Report("title", "about", figures)
    return {"benches": {"one": {"report": report.to_json()}, "failed": {"report": None}}}


def holds(found: Figure, baseline: Figure) -> bool:
    return compare(results(found), results(baseline))[1]


@pytest.mark.parametrize(
    ("better", "value", "expected"),
    [(LESS, 1.19, True), (LESS, 1.21, False), (LESS, 0.1, True),
     (MORE, 0.84, True), (MORE, 0.83, False), (MORE, 9.0, True)],
)  # fmt: skip
def test_a_ratio_may_be_a_fifth_worse(better: str, value: float, expected: bool) -> None:
    assert holds(Figure("f", value, better=better), Figure("f", 1.0, better=better)) is expected


def test_seconds_and_unsteady_ratios_are_not_compared() -> None:
    assert holds(Figure("f", 99.0, "s"), Figure("f", 1.0, "s"))
    assert holds(Figure("f", 99.0, steady=False), Figure("f", 1.0, steady=False))


def test_a_ratio_that_was_not_measured_fails() -> None:
    lines, fine = compare(results(), results(Figure("gone", 1.0)))
    assert not fine
    assert lines == ["FAIL gone: 1.0 -> not measured"]
    assert not holds(Figure("f", None), Figure("f", 1.0))


def test_a_new_ratio_is_no_failure() -> None:
    assert compare(results(Figure("new", 1.0)), results()) == ([], True)


def test_a_target_is_met_on_its_side() -> None:
    assert Figure("f", 2.0, target=2.0).met
    assert not Figure("f", 2.1, target=2.0).met
    assert Figure("f", 2.1, better=MORE, target=2.0).met
    assert not Figure("f", 1.9, better=MORE, target=2.0).met
    assert Figure("f", None, target=2.0).met is None
    assert Figure("f", 2.0).met is None


def test_a_report_reads_back() -> None:
    report = Report("title", "about", (Figure("f", 1.0, target=3.0),), left_out=("why",))
    assert report_of(report.to_json()) == report
