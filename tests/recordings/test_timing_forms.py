"""Errors of the kinds of change with 30 or more observations (docs/fidelity.md, Time)."""

import re
from functools import cache

import pytest

from tests.recordings.recorded_events import REPLICATED
from tests.recordings.tables import RECORDINGS
from tests.recordings.timings.__main__ import PAGE
from tests.recordings.timings.compared import OVERLOADED, Compared, Given, compared
from tests.recordings.timings.forms import Form, Quantile, forms
from tests.recordings.timings.page import BEGIN, END, HALF

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
        ("broker down", "median"),
        ("broker up", "median"),
        ("queues", "p99"),
    }


@pytest.mark.parametrize("given", [Given.TABLES, Given.RECORDER])
def test_the_page_has_these_errors(given: Given) -> None:
    page = errors_of_page()
    for kind, one in of(given).items():
        cells = page[kind]
        assert cells["n"] == [str(one.count)]
        for name, its in quantiles(one).items():
            assert cells[f"{name}, s"] == [f"{its.observed:.2f}"]
            written = cells[given][list(quantiles(one)).index(name)]
            assert error(written) == pytest.approx(its.per_future_error, abs=NEAR)


def test_the_page_states_which_kinds_hold() -> None:
    """With the recorder all; from the tables the half that gave no constant."""
    page = errors_of_page()
    halves = {kind + HALF for kind in ("broker up", "join")}
    assert set(page) == {*KINDS, *halves}
    for kind in page:
        given = Given.TABLES if kind in halves else Given.RECORDER
        for written, most in zip(page[kind][given], MOST.values(), strict=True):
            assert abs(error(written)) <= most, kind
    assert "Not explained" not in PAGE.read_text()


def test_the_page_has_every_latency_inside() -> None:
    """Those with masters are left out: what their overloaded hosts did is no evidence."""
    (cells,) = (row for row in table_of_page("Coverage") if row[0] == Given.TABLES)
    latencies, inside, _, gaps, inside_gaps, _ = map(int, cells[1:])
    outside = part_of_page("Outside of all futures").partition("\nFrom the files")[0]
    listed = re.findall(r"^\* `(.+)`, (\d+): (.+)$", outside, re.MULTILINE)
    assert sum(int(count) for _, count, _ in listed) == latencies + gaps - inside - inside_gaps > 0
    for name, count, text in listed:
        assert name in REPLICATED or text.count(" gap ") == int(count), name


def errors_of_page() -> dict[str, dict[str, list[str]]]:
    """By kind, cells by the head of their columns: of the median, then of p99."""
    head, _, *rows = table_of_page("Errors of quantiles", whole=True)
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        its = found.setdefault(row[0], {})
        for name, cell in zip(head, row, strict=True):
            its.setdefault(name, []).append(cell)
    return found


def part_of_page(heading: str) -> str:
    """The text below a heading that `make fidelity` made."""
    made = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    return made.partition(f"### {heading}")[2].partition("###")[0]


def table_of_page(heading: str, *, whole: bool = False) -> list[list[str]]:
    """Cells of the first table below a heading, with its head if wanted."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in part_of_page(heading).splitlines()
        if line.startswith("|")
    ]
    return rows if whole else rows[2:]


def error(cell: str) -> float:
    """Of `+3%`."""
    return float(cell.strip("%")) / 100
