"""Errors of the kinds of change with 30 or more observations (docs/fidelity.md, Time)."""

from functools import cache

import pytest

from tests.recordings.tables import RECORDINGS
from tests.recordings.timings.__main__ import PAGE
from tests.recordings.timings.compared import OVERLOADED, Compared, Given, compared
from tests.recordings.timings.figures import ENOUGH
from tests.recordings.timings.forms import Form, Quantile, forms
from tests.recordings.timings.page import BEGIN, END

SEEDS = 40
MOST = {"median": 0.10, "p99": 0.15}
KINDS = {"broker down": 53, "broker up": 68, "join": 212, "leave": 35, "queues": 38}
NEAR = 0.06
"""So few futures have an error that far from that of 1,000."""


@cache
def of(given: Given) -> dict[str, Form]:
    """By kind; all of them are of 5.3."""
    found: list[Compared] = []
    for name in set(RECORDINGS) - set(OVERLOADED):
        found += compared(name, SEEDS, given=given)
    return {one.kind: one for one in forms({given: found})}


def quantiles(one: Form) -> dict[str, Quantile]:
    return {"median": one.median, "p99": one.high}


def beyond(given: Given) -> dict[tuple[str, str], float]:
    """Errors beyond `MOST` by (kind, quantile), per future."""
    return {
        (kind, name): its.per_future_error
        for kind, one in of(given).items()
        for name, its in quantiles(one).items()
        if abs(its.per_future_error) > MOST[name]
    }


def test_with_what_the_recorder_knew_every_kind_holds() -> None:
    assert {kind: one.count for kind, one in of(Given.RECORDER).items()} == KINDS
    assert beyond(Given.RECORDER) == {}
    pooled = {kind: one.median.pooled_error for kind, one in of(Given.RECORDER).items()}
    assert max(map(abs, pooled.values())) <= MOST["median"], pooled


def test_from_the_tables_alone_what_the_recorder_did_to_clocks_and_brokers_is_missing() -> None:
    """He stopped members before brokers ended and queues changed; brokers registered late."""
    assert {kind: one.count for kind, one in of(Given.TABLES).items()} == KINDS
    assert set(beyond(Given.TABLES)) == {
        ("broker down", "median"), ("broker up", "median"), ("queues", "p99")
    }  # fmt: skip


@pytest.mark.parametrize("given", [Given.TABLES, Given.RECORDER])
def test_the_page_has_these_errors(given: Given) -> None:
    page = rows_of_page()
    assert {kind for kind, source in page if source == given} == set(KINDS)
    for kind, one in of(given).items():
        cells = page[kind, given]
        assert cells[1:3] == [one.version, str(one.count)]
        for its, (seen, pooled, each, _) in zip(
            quantiles(one).values(), (cells[4:8], cells[8:12]), strict=True
        ):
            assert seen == f"{its.observed:.2f}"
            assert error(pooled) == pytest.approx(its.pooled_error, abs=NEAR)
            assert error(each) == pytest.approx(its.per_future_error, abs=NEAR)


def test_the_page_says_that_every_kind_holds() -> None:
    page = rows_of_page()
    for kind in KINDS:
        cells = page[kind, Given.RECORDER]
        assert abs(error(cells[6])) <= MOST["median"]
        assert abs(error(cells[10])) <= MOST["p99"]
    assert "Not explained" not in PAGE.read_text()


def test_the_page_has_every_latency_inside() -> None:
    """Those with masters are left out: what their overloaded hosts did is no evidence."""
    rows = {cells[0]: cells for cells in table_of_page("Coverage by recording")}
    for name in RECORDINGS:
        latencies, inside = rows[name][1:3]
        assert int(latencies) == int(inside) > 0, name


def test_the_page_says_that_the_half_without_constants_holds() -> None:
    enough = [cells for cells in table_of_page("By kind") if int(cells[2]) >= ENOUGH
              and not cells[0].endswith("gap")]  # fmt: skip
    assert {cells[0] for cells in enough} == {"join", "broker up"}
    for cells in enough:
        assert abs(error(cells[6])) <= MOST["median"]
        assert abs(error(cells[7])) <= MOST["p99"]


def table_of_page(heading: str) -> list[list[str]]:
    """Cells of the first table below a heading that `make fidelity` made."""
    made = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    table = made.partition(f"### {heading}")[2].partition("###")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in table.splitlines() if line.startswith("|")]  # fmt: skip
    return rows[2:]


def rows_of_page() -> dict[tuple[str, Given], list[str]]:
    """Cells of the table of forms by (kind, what was simulated)."""
    rows = table_of_page("Kinds with 30 or more observations")
    return {(row[0], Given(row[3])): row for row in rows}


def error(cell: str) -> float:
    return float(cell.partition("(")[2].strip("%)")) / 100
