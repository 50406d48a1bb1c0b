"""The generated part of docs/fidelity.md on time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice

import numpy as np

from tests.recordings.timings.calibration import samples
from tests.recordings.timings.changes import Change
from tests.recordings.timings.compared import OVERLOADED, Compared, Given
from tests.recordings.timings.explained import log_line, why
from tests.recordings.timings.figures import ENOUGH, Figures, by_kind
from tests.recordings.timings.forms import Quantile, forms, relative_error
from tests.recordings.timings.timeline import GAP

SOURCES = {
    Given.TABLES: "the derived tables",
    Given.FILES: "what `ingest` makes of the files, beyond that",
    Given.RECORDER: "the derived tables with what the recorder knew, beyond that",
}
BEGIN, END = "<!-- made by make fidelity -->", "<!-- end of what make fidelity made -->"


def page(found: Mapping[Given, Sequence[Compared]], seeds: int) -> str:
    """Markdown: samples, coverage, figures by kind of the comparison half, what is outside."""
    trusted = _trusted(found[Given.TABLES])
    half = [one for one in trusted if not one.change.calibrates]
    parts = [
        "### What the delays were taken from",
        *_samples(),
        f"### Coverage by recording, {seeds:,} futures each",
        *_coverage(found),
        "### By kind, the comparison half alone",
        *_kinds(by_kind(half)),
        "### The same, both halves",
        *_kinds(by_kind(trusted)),
        "### Kinds with 30 or more observations, in each form",
        *_forms(found),
        "### Outside of all futures",
        *(line for given in found for line in _outside(found, given)),
    ]
    return "\n\n".join(parts)


def _trusted(found: Sequence[Compared]) -> list[Compared]:
    return [one for one in found if one.change.recording not in OVERLOADED]


def _samples() -> Iterator[str]:
    rows = [
        "| delay, ms | samples | least | median | 95 % | 99 % | most |",
        "|---|---|---|---|---|---|---|",
    ]
    for what, values in sorted(samples().items()):
        cells = [f"{value:,.0f}" for value in np.quantile(values, [0, 0.5, 0.95, 0.99, 1])]
        rows.append(f"| {what} | {len(values)} | {' | '.join(cells)} |")
    yield "\n".join(rows)


def _coverage(found: Mapping[Given, Sequence[Compared]]) -> Iterator[str]:
    names = sorted({one.change.recording for one in found[Given.TABLES]})
    columns = [(Given.TABLES, False), (Given.TABLES, True), (Given.FILES, False),
               (Given.RECORDER, False), (Given.RECORDER, True)]  # fmt: skip
    rows = [
        "| recording | latencies | inside | p1 to p99 | gaps | inside | p1 to p99 | from files: "
        "latencies inside | p1 to p99 | with the recorder: latencies inside | p1 to p99 | "
        "gaps inside | p1 to p99 |",
        "|" + "---|" * 13,
    ]
    for name in [*names, None]:
        cells = [name or "**all**"]
        for given, gap in columns:
            its = [
                one
                for one in found[given]
                if name in (None, one.change.recording) and (one.what == GAP) == gap
            ]
            cells += [str(len(its))] if given == Given.TABLES else []
            cells += [
                str(sum(one.is_inside for one in its)),
                str(sum(one.is_in_the_middle for one in its)),
            ]
        rows.append("| " + " | ".join(cells) + " |")
    yield "\n".join(rows)


def _kinds(found: Iterable[Figures]) -> Iterator[str]:
    rows = [
        "| change | version | n | inside | p1 to p99 | widest / window, s | "
        "median: observed, simulated, s | p99: observed, simulated, s | Wasserstein, s | KS |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        enough = one.count >= ENOUGH
        rows.append(
            f"| {one.kind} | {one.version} | {one.count} | {one.inside} | {one.middle} | "
            f"{one.width_s:.1f} / {one.window_s:g} | {_error(one.median_s, enough)} | "
            f"{_error(one.high_s, enough)} | {one.distance_s:.2f} | {one.largest_gap:.2f} |"
        )
    yield "\n".join(rows)


def _error(pair: tuple[float, float], enough: bool) -> str:
    seen, made = pair
    text = f"{seen:.2f}, {made:.2f}"
    if enough:
        text += f" ({relative_error(seen, made):+.0%})"
    return text


def _forms(found: Mapping[Given, Sequence[Compared]]) -> Iterator[str]:
    rows = [
        "| change | version | n | simulated from | median, s | pooled | per future | place | "
        "p99, s | pooled | per future | place |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    trusted = {given: _trusted(its) for given, its in found.items()}
    for one in forms(trusted):
        cells = [one.kind, one.version, str(one.count), one.given.value]
        cells += [*_cells(one.median), *_cells(one.high)]
        rows.append(f"| {' | '.join(cells)} |")
    yield "\n".join(rows)


def _cells(of: Quantile) -> list[str]:
    return [
        f"{of.observed:.2f}",
        f"{of.pooled:.2f} ({of.pooled_error:+.0%})",
        f"{of.per_future:.2f} ({of.per_future_error:+.0%})",
        f"{of.place:.0%}",
    ]


def _outside(found: Mapping[Given, Sequence[Compared]], given: Given) -> Iterator[str]:
    def key(one: Compared) -> tuple[str, str]:
        return one.change.recording, why(one, given) or "**Not explained.**"

    outside = [one for one in found[given] if not one.is_inside]
    if given != Given.TABLES:
        known = {_what(one) for one in found[Given.TABLES] if not one.is_inside}
        outside = [one for one in outside if _what(one) not in known]
    outside.sort(key=key)
    yield f"From {SOURCES[given]}:" if outside else f"From {SOURCES[given]}: nothing."
    for (recording, reason), part in groupby(outside, key=key):
        its = list(part)
        listed = ", ".join(_short(one) for one in its[:12])
        more = f", and {len(its) - 12} more" if len(its) > 12 else ""
        lines = [f"* `{recording}`, {len(its)}: {reason} {listed}{more}."]
        logged = list(_log_lines(its))
        if logged:
            lines += ["", "  ```", *(f"  {line}" for line in logged), "  ```"]
        yield "\n".join(lines)


def _what(one: Compared) -> tuple[Change, str, str]:
    return one.change, one.who, one.what


def _log_lines(part: Sequence[Compared]) -> Iterator[str]:
    """One of each change."""
    by_change = sorted(part, key=lambda one: (one.change.number, one.what == GAP))
    for _, its in groupby(by_change, key=lambda one: one.change.number):
        yield from islice(filter(None, map(log_line, its)), 1)


def _short(one: Compared) -> str:
    its = one.simulated_ms / 1_000
    made = f"{its[0]:.2f} to {its[-1]:.2f}" if one.share else "never"
    return (f"{one.change.kind} {one.change.number} {one.who} {one.what} "
            f"{one.observed_ms / 1_000:.2f} s ({made})")  # fmt: skip
