"""Expectations: the maximum figures of groups under a change, used to gate the change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import inf
from typing import TYPE_CHECKING, Any

from rebalance_core.contracts.planning import BROKEN, EXPECTED_FIGURES, KEPT, ExpectedFigure
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.verdicts import UNKNOWN
from rebalance_core.planning import table_keys
from rebalance_core.planning.table_keys import TableKey, key, keys_of, patterns, read_values
from rebalance_core.planning.toml_lines import TomlLines

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ExpectationsBegun, ExpectationsRow

EXPECT = "expect"
"""The name of the tables in a scenario or search file."""

_most = table_keys.number_that(lambda value: 0 <= value < inf, "from 0 up")


@dataclass(frozen=True, slots=True)
class Expectation:
    """An ``[[expect]]`` table: the maximum of each figure for the matching groups.

    Figures from simulated futures are judged by their mean or, with ``percentile``, by the value
    that this percentage of the futures does not exceed (nearest rank).

    Attributes:
        number: the number of the table in its file, from 1.
        place: ``file:line``.
    """

    number: int
    place: str = field(repr=False, compare=False)
    group: tuple[str, ...] = key(patterns, ("*",))
    cluster: tuple[str, ...] = key(patterns, ("*",))
    percentile: float | None = key(table_keys.number(0, 100))
    no_owner_s: float | None = key(_most)
    orphaned: float | None = key(_most)
    peak_queues: float | None = key(_most)
    moved: float | None = key(_most)
    read_again: float | None = key(_most)
    left_unread: float | None = key(_most)
    late_s: float | None = key(_most)

    @property
    def limits(self) -> dict[ExpectedFigure, float]:
        """The maximum for each figure that it limits."""
        values = {name: getattr(self, name) for name in EXPECTED_FIGURES}
        return {name: value for name, value in values.items() if value is not None}

    def concerns(self, cluster: str, consumer_group: str) -> bool:
        """Return True if a cluster and a group match."""
        return any(fnmatchcase(cluster, glob) for glob in self.cluster) and any(
            fnmatchcase(consumer_group, glob) for glob in self.group
        )


_KEYS: Mapping[str, TableKey] = keys_of(Expectation)


def read_expectations(
    tables: Any, file: str, lines: TomlLines, mistakes: list[str]
) -> tuple[Expectation, ...]:
    """Return the expectations of a file; mistakes are added to ``mistakes``.

    Args:
        tables: the value of ``expect`` in the file.
        file: its name.
        lines: the file's lines.
        mistakes: receives one line per mistake.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        line = lines.of_key(EXPECT)
        mistakes.append(f"{file}:{line}: {EXPECT} must be tables that begin with [[{EXPECT}]]")
        return ()
    expectations = []
    for index, table in enumerate(tables):
        place = f"{file}:{lines.of_table(EXPECT, index)}"
        values, wrong = read_values(table, _KEYS, f" of {EXPECT}")
        mistakes += [f"{file}:{lines.of_key(name, EXPECT, index)}: {text}" for name, text in wrong]
        if not any(name in table for name in EXPECTED_FIGURES):
            listed = ", ".join(EXPECTED_FIGURES)
            mistakes.append(f"{place}: {EXPECT} limits nothing; expected at least one of {listed}")
        expectations.append(Expectation(index + 1, place, **values))
    return tuple(expectations)


Groups = Iterable[tuple[str, str]]
"""Clusters and groups."""


def refuse_unjudged(
    expectations: Iterable[Expectation],
    groups: Groups,
    missing: Mapping[str, str],
    of_means: Iterable[str] = (),
) -> None:
    """Refuse a run that would leave an expectation unjudged.

    Args:
        expectations: the run's expectations.
        groups: the groups that the run computes.
        missing: the figures that it does not compute, each with the reason.
        of_means: the figures for which it computes only the mean.

    Raises:
        UsageError: A pattern matches no group, or a figure is not computed; one line per mistake.
    """
    mistakes: list[str] = []
    known = list(groups)
    for each in expectations:
        mistakes += _unmatched(each, known)
        for name in each.limits:
            if name in missing:
                mistakes.append(f"{each.place}: {name} is not computed: {missing[name]}")
            elif each.percentile is not None and name in of_means:
                mistakes.append(f"{each.place}: {name} is computed as a mean, without percentile")
    if mistakes:
        raise UsageError("\n".join(mistakes))


def _unmatched(expectation: Expectation, groups: Sequence[tuple[str, str]]) -> Iterator[str]:
    clusters = {cluster for cluster, _ in groups}
    for glob in expectation.cluster:
        if not any(fnmatchcase(cluster, glob) for cluster in clusters):
            hint = did_you_mean(glob, clusters)
            yield f'{expectation.place}: cluster = "{glob}" matches no cluster{hint}'
    named = {
        group
        for cluster, group in groups
        if any(fnmatchcase(cluster, glob) for glob in expectation.cluster)
    }
    for glob in expectation.group:
        if not any(fnmatchcase(group, glob) for group in named):
            hint = did_you_mean(glob, named)
            yield f'{expectation.place}: group = "{glob}" matches none of {len(named)} groups{hint}'


@dataclass(frozen=True, slots=True)
class Computed:
    """The figures of a group under a variant.

    Attributes:
        means: figure -> its only value, or the mean over all futures; None: unknown.
        futures: figure -> its value in each future, if futures differ.
        reason: why figures are unknown.
    """

    means: Mapping[str, float | None]
    futures: Mapping[str, Sequence[float]]
    reason: str

    def at(self, figure: str, percentile: float | None) -> float | None:
        """Return the value that an expectation limits, or None if unknown."""
        mean = self.means.get(figure)
        if mean is None or percentile is None or figure not in self.futures:
            return mean
        return nearest_rank(self.futures[figure], percentile)


def nearest_rank(values: Sequence[float], percentile: float) -> float:
    """Return the smallest value that this percentage of the values does not exceed.

    >>> nearest_rank([3, 1, 2, 4], 75), nearest_rank([3, 1, 2, 4], 76)
    (3.0, 4.0)
    """
    rank = -(-len(values) * percentile // 100)
    return float(sorted(values)[max(1, int(rank)) - 1])


def judged(
    expectations: Iterable[Expectation], variant: ExpectationsBegun, computed: Computed
) -> Iterator[ExpectationsRow]:
    """Yield the rows of ``expectations`` for a group under a variant.

    Args:
        expectations: the expectations of the variant's file.
        variant: the variant's columns.
        computed: the group's figures.
    """
    for each in expectations:
        if not each.concerns(variant["cluster"], variant["consumer_group"]):
            continue
        for figure, at_most in each.limits.items():
            value = computed.at(figure, each.percentile)
            yield {
                **variant,
                "expectation": each.number,
                "figure": figure,
                "percentile": each.percentile,
                "at_most": at_most,
                "value": value,
                "verdict": UNKNOWN if value is None else KEPT if value <= at_most else BROKEN,
                "reason": computed.reason if value is None else None,
            }


def sentence(row: ExpectationsRow, place: str) -> str:
    """Return a row of ``expectations`` as a sentence.

    Args:
        row: the table's row.
        place: ``file:line`` of the [[expect]] table.
    """
    share = "" if row["percentile"] is None else f" in {row['percentile']:g} % of the futures"
    reached = f"not known ({row['reason']})" if row["value"] is None else f"{row['value']:,.10g}"
    variant = f"{row['scenario']}, {row['strategy']}, seed {row['seed']}"
    return (
        f"{row['verdict']} {row['cluster']}/{row['consumer_group']}: {row['figure']} {reached}"
        f"{share}; expected at most {row['at_most']:,.10g} ({variant}; {place})"
    )
