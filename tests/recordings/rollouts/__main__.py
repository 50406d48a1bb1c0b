"""``python -m tests.recordings.rollouts``: compare all rollouts, for docs/fidelity-figures.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.recordings.figures_page import write_part
from tests.recordings.rollouts.chosen import all_chosen
from tests.recordings.rollouts.compared import (
    LIKELY,
    Compared,
    all_compared,
    by_plan,
    likely,
    rank_correlation,
)
from tests.recordings.rollouts.runs import FIGURES, Given

BEGIN, END = "<!-- made by python -m tests.recordings.rollouts -->", "<!-- end of rollouts -->"
CHOSEN = ("<!-- chosen, made by the same -->", "<!-- end of chosen -->")
GROUPS = ("orders-fast", "orders-ordered")
UNITS = {"finish_ms": 1_000}
"""What a figure is divided by for the page: seconds."""


def main() -> None:
    """Run it: some three minutes of processor time."""
    found = {given: all_compared(given) for given in Given}
    write_part(
        (BEGIN, END),
        [*_plans(found), "", *_inside(found), "", *_likely()],
    )
    write_part(CHOSEN, _chosen())


def _chosen() -> Iterator[str]:
    yield "| group | budget | chosen | late or read again, measured | the fewest measured |"
    yield "|---|---|---|---|---|"
    for one in all_chosen():
        yield (
            f"| {one.group} | {one.budget} | {one.plan or 'none keeps it'} | {one.measured:,.1f} "
            f"| {one.best:,.1f} |"
        )


def _plans(found: dict[Given, list[Compared]]) -> Iterator[str]:
    figures = list(FIGURES)[:4]
    yield "| group | plan | runs | " + " | ".join(figures) + " |"
    yield "|" + "---|" * (3 + len(figures))
    for group, plan in by_plan(found[Given.TABLES]):
        its = [one for one in found[Given.TABLES] if (one.group, one.run.plan) == (group, plan)]
        runs = len({one.run.name for one in its})
        cells = []
        for figure in figures:
            seen, tables = _of(found[Given.TABLES], figure)[group, plan]
            _, planned = _of(found[Given.PLAN], figure)[group, plan]
            unit = UNITS.get(figure, 1)
            cells.append(f"{seen / unit:,.1f}: {tables / unit:,.1f}, {planned / unit:,.1f}")
        yield f"| {group} | {plan} | {runs} | " + " | ".join(cells) + " |"


def _of(found: Sequence[Compared], figure: str) -> dict[tuple[str, str], tuple[float, float]]:
    return by_plan([one for one in found if one.figure == figure])


def _inside(found: dict[Given, list[Compared]]) -> Iterator[str]:
    columns = [(given, group) for given in Given for group in GROUPS]
    heads = [f"{group}, from the {given}" for given, group in columns]
    yield "| figure | " + " | ".join(heads) + " | order of the plans, from the tables, the plan |"
    yield "|" + "---|" * (2 + len(columns))
    for figure in FIGURES:
        cells = []
        for given, group in columns:
            its = [x for x in found[given] if (x.figure, x.group) == (figure, group)]
            cells.append(f"{sum(x.is_inside for x in its)}/{len(its)}")
        ranks = [rank_correlation(_of(found[given], figure).values()) for given in Given]
        yield f"| {figure} | {' | '.join(cells)} | {ranks[0]:.2f}, {ranks[1]:.2f} |"


def _likely() -> Iterator[str]:
    yield "| of all runs, between 5 and 95 % of the futures | " + " | ".join(LIKELY) + " |"
    yield "|" + "---|" * (1 + len(LIKELY))
    for given in Given:
        counts = likely(given)
        cells = [f"{inside}/{of}" for inside, of in counts.values()]
        yield f"| from the {given} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
