"""The generated part of docs/fidelity.md on time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from tests.recordings.timings.calibration import samples
from tests.recordings.timings.compared import OVERLOADED, Compared
from tests.recordings.timings.explained import log_line, why
from tests.recordings.timings.figures import ENOUGH, Figures, by_kind
from tests.recordings.timings.timeline import GAP

BEGIN, END = "<!-- made by make fidelity -->", "<!-- end of what make fidelity made -->"
SHORTEST_S = 1.0
"""Errors of quantiles are relative to the observed value, or to this where that is less."""


def page(of_tables: Sequence[Compared], of_files: Sequence[Compared], seeds: int) -> str:
    """Markdown: samples, coverage, figures by kind of the comparison half, what is outside."""
    trusted = [one for one in of_tables if one.change.recording not in OVERLOADED]
    half = [one for one in trusted if not one.change.calibrates]
    parts = [
        "### What the delays were taken from",
        *_samples(),
        f"### Coverage by recording, {seeds:,} futures each",
        *_coverage(of_tables, of_files),
        "### By kind, the comparison half alone",
        *_kinds(by_kind(half)),
        "### The same, both halves",
        *_kinds(by_kind(trusted)),
        "### Outside of all futures",
        *_outside(of_tables, from_files=False),
        *_outside(of_files, from_files=True),
    ]
    return "\n\n".join(parts)


def _samples() -> Iterator[str]:
    rows = [
        "| delay, ms | samples | least | median | 95 % | 99 % | most |",
        "|---|---|---|---|---|---|---|",
    ]
    for what, values in sorted(samples().items()):
        cells = [f"{value:,.0f}" for value in np.quantile(values, [0, 0.5, 0.95, 0.99, 1])]
        rows.append(f"| {what} | {len(values)} | {' | '.join(cells)} |")
    yield "\n".join(rows)


def _coverage(of_tables: Sequence[Compared], of_files: Sequence[Compared]) -> Iterator[str]:
    names = sorted({one.change.recording for one in of_tables})
    rows = [
        "| recording | latencies | inside | p1 to p99 | gaps | inside | p1 to p99 | "
        "from files: latencies | inside | p1 to p99 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in [*names, None]:
        cells = [f"**{'all' if name is None else name}**" if name is None else name]
        for source, gap in ((of_tables, False), (of_tables, True), (of_files, False)):
            its = [
                one
                for one in source
                if name in (None, one.change.recording) and (one.what == GAP) == gap
            ]
            cells += [
                str(len(its)),
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
        text += f" ({(made - seen) / max(abs(seen), SHORTEST_S):+.0%})"
    return text


def _outside(found: Sequence[Compared], *, from_files: bool) -> Iterator[str]:
    def key(one: Compared) -> tuple[str, str]:
        return one.change.recording, why(one, from_files=from_files) or "**Not explained.**"

    outside = sorted((one for one in found if not one.is_inside), key=key)
    if from_files:
        explained = {key(one) for one in found if why(one, from_files=False)}
        outside = [one for one in outside if key(one) not in explained]
    source = "what `ingest` makes of the files, beyond that" if from_files else "the derived tables"
    yield f"From {source}:"
    for (recording, reason), part in groupby(outside, key=key):
        its = list(part)
        listed = ", ".join(_short(one) for one in its[:12])
        more = f", and {len(its) - 12} more" if len(its) > 12 else ""
        lines = [f"* `{recording}`, {len(its)}: {reason} {listed}{more}."]
        line = next(filter(None, (log_line(one) for one in its if one.what != GAP)), None)
        if line:
            lines += ["", "  ```", f"  {line}", "  ```"]
        yield "\n".join(lines)


def _short(one: Compared) -> str:
    its = one.simulated_ms / 1_000
    made = f"{its[0]:.2f} to {its[-1]:.2f}" if one.share else "never"
    return (f"{one.change.kind} {one.change.number} {one.who} {one.what} "
            f"{one.observed_ms / 1_000:.2f} s ({made})")  # fmt: skip
