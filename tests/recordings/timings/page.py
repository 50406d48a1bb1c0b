"""The generated part of docs/fidelity-figures.md on time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from rebalance_core.timing.moves import GAP
from tests.recordings.timings.changes import Change
from tests.recordings.timings.compared import OVERLOADED, Compared, Given
from tests.recordings.timings.explained import why
from tests.recordings.timings.figures import ENOUGH
from tests.recordings.timings.forms import Form, Quantile, forms

SOURCES = {
    Given.TABLES: "the tables",
    Given.FILES: "the files, beyond that",
    Given.RECORDER: "the tables and the recorder, beyond that",
}
LISTED = 2
"""So many of what one cause put outside are listed, of the tables."""
HALF = ", comparison half"
BEGIN, END = "<!-- made by make fidelity -->", "<!-- end of what make fidelity made -->"


def page(found: Mapping[Given, Sequence[Compared]], seeds: int) -> str:
    """Markdown: coverage, errors of quantiles, what is outside and why."""
    parts = [
        f"### Coverage in {seeds:,} futures",
        "\n".join(_coverage(found)),
        f"### Errors of quantiles, kinds with {ENOUGH} or more latencies",
        "\n".join(_errors(found)),
        "### Outside of all futures",
        *(line for given in found for line in _outside(found, given)),
    ]
    return "\n\n".join(parts) + "\n"


def _coverage(found: Mapping[Given, Sequence[Compared]]) -> Iterator[str]:
    yield "| simulated from | latencies | inside | p1 to p99 | gaps | inside | p1 to p99 |"
    yield "|---|---|---|---|---|---|---|"
    for given, comparisons in found.items():
        cells = [str(given)]
        for gap in (False, True):
            its = [one for one in comparisons if (one.what == GAP) == gap]
            middle = sum(one.is_in_the_middle for one in its)
            cells += [f"{len(its)}", f"{sum(one.is_inside for one in its)}", f"{middle}"]
        yield f"| {' | '.join(cells)} |"


def _errors(found: Mapping[Given, Sequence[Compared]]) -> Iterator[str]:
    sources = " | ".join(found)
    yield f"| change | n | median, s | {sources} | p99, s | {sources} |"
    yield "|" + "---|" * (4 + 2 * len(found))
    for key, its in groupby(_forms(found), key=lambda one: (one.kind, one.count)):
        of = list(its)
        cells = [*map(str, key), *_cells([one.median for one in of])]
        yield f"| {' | '.join([*cells, *_cells([one.high for one in of])])} |"


def _forms(found: Mapping[Given, Sequence[Compared]]) -> list[Form]:
    """Of both halves and of the one that gave no constant."""
    trusted = {
        given: [one for one in its if one.change.recording not in OVERLOADED]
        for given, its in found.items()
    }
    half = {
        given: [one for one in its if not one.change.calibrates] for given, its in trusted.items()
    }
    halves = [replace(one, kind=one.kind + HALF) for one in forms(half)]
    return sorted([*forms(trusted), *halves], key=lambda one: one.kind)


def _cells(by_source: Sequence[Quantile]) -> list[str]:
    return [f"{by_source[0].observed:.2f}", *(f"{one.per_future_error:+.0%}" for one in by_source)]


def _outside(found: Mapping[Given, Sequence[Compared]], given: Given) -> Iterator[str]:
    def key(one: Compared) -> tuple[str, str]:
        return why(one, given) or "**Not explained.**", one.change.recording

    outside = [one for one in found[given] if not one.is_inside]
    if given != Given.TABLES:
        known = {_what(one) for one in found[Given.TABLES] if not one.is_inside}
        outside = [one for one in outside if _what(one) not in known]
    outside.sort(key=key)
    rows = [f"From {SOURCES[given]}:" if outside else f"From {SOURCES[given]}: nothing."]
    rows += [""] * bool(outside)
    for (reason, recording), part in groupby(outside, key=key):
        its = list(part)
        rows.append(f"* `{recording}`, {len(its)}: {reason}")
        if given == Given.TABLES:
            listed = ", ".join(_short(one) for one in its[:LISTED])
            more = f", and {len(its) - LISTED} more" if len(its) > LISTED else ""
            rows[-1] += f" {listed}{more}."
    yield "\n".join(rows)


def _what(one: Compared) -> tuple[Change, str, str]:
    return one.change, str(one.who), one.what


def _short(one: Compared) -> str:
    its = one.simulated_ms / 1_000
    made = f"{its[0]:.2f} to {its[-1]:.2f}" if one.share else "never"
    return (
        f"{one.change.kind} {one.change.number} {one.who} {one.what} "
        f"{one.observed_ms / 1_000:.2f} s ({made})"
    )
