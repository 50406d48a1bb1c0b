"""`python -m tests.bench.check`: the ratios of a run against those that are checked in."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.report import MORE, TIMES, Figure, read_json, report_of

BASELINE = Path(__file__).parent / "measured/quick.json"
WORSE_BY = 0.2
"""How much worse a ratio may be; two runs on an idle machine differ by less."""
COMPARED = (TIMES, "exponent")


def figures_of(results: Mapping[str, Any]) -> dict[str, Figure]:
    """All figures of a run by name."""
    reports = [report_of(one["report"]) for one in results["benches"].values() if one["report"]]
    return {figure.name: figure for report in reports for figure in report.figures}


def worse(found: Figure, baseline: Figure) -> float | None:
    """By what share a figure is worse than the baseline; negative: better; None: not comparable."""
    if not (found.value and baseline.value and baseline.steady and found.unit in COMPARED):
        return None
    if found.better == MORE:
        return baseline.value / found.value - 1
    return found.value / baseline.value - 1


def compare(found: Mapping[str, Any], baseline: Mapping[str, Any]) -> tuple[list[str], bool]:
    """A line for each ratio, and whether all hold.

    A ratio of the baseline that the run does not have fails: it was not measured.
    """
    now, lines, holds = figures_of(found), [], True
    for name, before in figures_of(baseline).items():
        if before.unit not in COMPARED or not before.steady or before.value is None:
            continue
        share = worse(now[name], before) if name in now else None
        fails = share is None or share > WORSE_BY
        holds &= not fails
        value = now[name].value if name in now else "not measured"
        told = "" if share is None else f", {abs(share):.0%} {'worse' if share > 0 else 'better'}"
        lines.append(f"{'FAIL' if fails else 'ok':<5}{name}: {before.value} -> {value}{told}")
    return lines, holds


def main() -> int:
    """Print the comparison; 1 if a ratio is worse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="JSON of python -m tests.bench")
    parser.add_argument("--baseline", type=Path, default=BASELINE)
    options = parser.parse_args()
    lines, holds = compare(read_json(options.results), read_json(options.baseline))
    print("\n".join(lines))
    print(f"ratios may be {WORSE_BY:.0%} worse than {options.baseline}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
