"""The variants of a plan: every history (a scenario under a seed) under every strategy."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from rebalance_core.model.errors import RebalanceError, UsageError
from rebalance_core.model.request_mode import RequestMode, parse_request_mode
from rebalance_core.planning.known_strategies import LEAGUE_STRATEGIES, planning_strategy
from rebalance_core.planning.scenario.cluster_life import ClusterNames, EditedRows
from rebalance_core.planning.scenario.each import Clients, names_clients, single_losses
from rebalance_core.planning.scenario.edit import matches
from rebalance_core.planning.scenario.scenario import Scenario, group_edits, shared_edits
from rebalance_core.planning.strategies import PlanningStrategy

BASELINE = "baseline"
"""The input history, without an edit."""
RECORDED = "recorded"
"""Every member's own strategy, as in the history."""
LEAGUE = "league"
POP = "POP"
"""All members query brokers, which serve every topic by POP; the text is that of the request
mode.
"""
_AROUND_SIGNS = re.compile(" *([(=)]) *")
NEVER_MS = 1 << 62
"""A time after every event: the scenario does not edit the cluster."""


@dataclass(frozen=True, slots=True)
class History:
    """A scenario with a seed, or the baseline if there is no scenario."""

    scenario: Scenario | None
    seed: int

    @property
    def name(self) -> str:
        """The name, as in the column ``scenario``."""
        return BASELINE if self.scenario is None else self.scenario.name


@dataclass(frozen=True, slots=True)
class SweptStrategy:
    """A strategy of a sweep; with ``strategy`` None, every member keeps its own.

    With ``pop``, groups pop all their topics in this mode (`sweep.member_settings.popped_groups`),
    by their own strategies.
    """

    strategy: PlanningStrategy | None
    pop: RequestMode | None = None

    @property
    def text(self) -> str:
        """The text, as in the column ``strategy``."""
        if self.pop is not None:
            return str(self.pop)
        return RECORDED if self.strategy is None else str(self.strategy)

    @property
    def of_rocketmq(self) -> bool:
        """Whether RocketMQ has the strategy; False for a hypothetical one."""
        return self.strategy is None or self.strategy.of_rocketmq


@dataclass(frozen=True, slots=True)
class Variants:
    """All histories and all strategies of a sweep; every pair is a variant."""

    histories: tuple[History, ...]
    strategies: tuple[SweptStrategy, ...]

    def __len__(self) -> int:
        return len(self.histories) * len(self.strategies)

    def of_rocketmq(self) -> list[tuple[int, str | None]]:
        """Return (number, text) of RocketMQ's strategies, with None for the members' own."""
        return [
            (number, None if swept.strategy is None else swept.text)
            for number, swept in enumerate(self.strategies)
            if swept.of_rocketmq and swept.pop is None
        ]

    def popped(self) -> list[tuple[int, RequestMode]]:
        """Return (number, request mode) of the strategies under which groups pop."""
        return [
            (number, swept.pop)
            for number, swept in enumerate(self.strategies)
            if swept.pop is not None
        ]

    def hypothetical(self) -> list[tuple[int, PlanningStrategy]]:
        """Return (number, strategy) of the hypothetical strategies, which RocketMQ lacks."""
        return [
            (number, swept.strategy)
            for number, swept in enumerate(self.strategies)
            if swept.strategy is not None and not swept.of_rocketmq
        ]


def read_strategies(texts: Iterable[str], mistakes: list[str]) -> tuple[SweptStrategy, ...]:
    """Return the distinct strategies for these strings; ``recorded`` if there are none.

    Args:
        texts: strategy texts, ``recorded``, ``POP(share_queue_num=N)``, or ``league`` for
            `LEAGUE_STRATEGIES`.
        mistakes: receives one sentence for every invalid string.
    """
    strategies: dict[SweptStrategy, None] = {}
    listed = (LEAGUE_STRATEGIES if text.strip() == LEAGUE else (text,) for text in texts)
    for text in chain.from_iterable(listed):
        try:
            strategies[_read_strategy(text.strip())] = None
        except RebalanceError as error:
            mistakes.append(f"--strategy {text}: {error}")
    return tuple(strategies) or (SweptStrategy(None),)


def _read_strategy(text: str) -> SweptStrategy:
    if text == RECORDED:
        return SweptStrategy(None)
    if text.partition("(")[0].strip() == POP:
        return SweptStrategy(None, _read_pop(text))
    return SweptStrategy(planning_strategy(text))


def _read_pop(text: str) -> RequestMode:
    try:
        return parse_request_mode(_AROUND_SIGNS.sub(r"\1", text))
    except UsageError:
        raise UsageError(
            "expected POP(share_queue_num=N) with a 32-bit whole number N: how many other "
            "members' queues each member also takes from; 0 and less mean all"
        ) from None


def is_popped(strategy: str) -> bool:
    """Return True if the value of the column ``strategy`` is that of a strategy under which groups
    pop.
    """
    return strategy.startswith(f"{POP}(")


def variants_of(
    scenarios: Sequence[Scenario], strategies: Sequence[SweptStrategy], seeds: Sequence[int]
) -> Variants:
    """Return the baseline once, without random choices, and every scenario under every seed."""
    of_scenarios = [History(scenario, seed) for scenario in scenarios for seed in seeds]
    return Variants((History(None, seeds[0]), *of_scenarios), tuple(strategies))


def wants_members(variants: Variants) -> bool:
    """Return True if the objects that may be lost depend on the members."""
    return any(map(names_clients, scenarios_of(variants)))


def with_single_losses(
    variants: Variants, clusters: Mapping[str, ClusterNames], clients: Clients
) -> Variants:
    """Return the variants with a scenario for each object that an edit with ``each`` loses.

    The arguments and errors are those of `single_losses`.
    """
    losses = {
        scenario.name: single_losses(scenario, clusters, clients)
        for scenario in scenarios_of(variants)
    }
    histories = [
        replace(history, scenario=scenario)
        for history in variants.histories
        for scenario in ([None] if history.scenario is None else losses[history.scenario.name])
    ]
    return replace(variants, histories=tuple(histories))


def idle_switches(variants: Variants) -> Iterator[str]:
    """Yield scenarios whose switch has no effect, because swept strategies replace its target."""
    replaced = any(swept.text != RECORDED for swept in variants.strategies)
    for scenario in scenarios_of(variants):
        kinds = {edit.KIND for edit in scenario.edits}
        if "switch_strategy" in kinds and replaced:
            yield (
                f"{scenario.name}: its switch_strategy has an effect only with --strategy "
                f"{RECORDED}; any other strategy replaces its target"
            )
        if "switch_request_mode" in kinds and variants.popped():
            yield (
                f"{scenario.name}: its switch_request_mode has no effect with --strategy {POP}, "
                "which replaces it"
            )


def first_edit_ms(history: History, cluster: str, end_ms: int) -> int | None:
    """Return when the first edit of a cluster happens; None for the baseline."""
    if history.scenario is None:
        return None
    edits = history.scenario.edits
    times = (edit.at.at(end_ms) for edit in edits if matches(cluster, edit.cluster))
    return min(times, default=NEVER_MS)


def first_edits(history: History, ends: Mapping[str, int]) -> dict[str, int]:
    """Return `first_edit_ms` of each cluster that has an edit.

    Args:
        history: the history.
        ends: the last event of each cluster, epoch ms.
    """
    firsts = {cluster: first_edit_ms(history, cluster, end_ms) for cluster, end_ms in ends.items()}
    return {cluster: first for cluster, first in firsts.items() if first is not None}


def scenarios_of(variants: Variants) -> list[Scenario]:
    """Return the distinct scenarios."""
    return list({h.scenario.name: h.scenario for h in variants.histories if h.scenario}.values())


@dataclass(frozen=True)
class EditsByHistory:
    """The edits of every history, in the form that tasks use.

    Attributes:
        histories: the plan's histories.
        ends: the last event of each cluster, epoch ms.
        queues: the number of queues in each topic, by cluster (`queues_in`), if an edit needs them.
        proxies: the names found in rows, by cluster.
    """

    histories: tuple[History, ...]
    ends: Mapping[str, int] = field(repr=False)
    queues: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    proxies: Mapping[str, Collection[str]] = field(default_factory=dict, repr=False)

    def touches(self, history: int, cluster: str, consumer_group: str | None) -> bool:
        """Return False if the rows remain unchanged, as in a cluster without events."""
        scenario = self.histories[history].scenario
        if scenario is None or cluster not in self.ends:
            return False
        return any(
            matches(cluster, edit.cluster)
            and (
                edit.concerns_cluster()
                if consumer_group is None
                else edit.concerns_group(consumer_group)
            )
            for edit in scenario.edits
        )

    def edited(
        self,
        history: int,
        cluster: str,
        consumer_group: str | None,
        rows: Sequence[Mapping[str, Any]],
        group_row: Mapping[str, Any] | None,
    ) -> EditedRows:
        """Return `group_edits`, or `shared_edits` without a group; the errors are the same."""
        chosen = self.histories[history]
        assert chosen.scenario is not None
        end_ms = self.ends[cluster]
        if consumer_group is None:
            return shared_edits(chosen.scenario, rows, cluster=cluster, end_ms=end_ms)
        return group_edits(
            chosen.scenario,
            consumer_group,
            rows,
            cluster=cluster,
            end_ms=end_ms,
            group_row=group_row,
            queues=self.queues.get(cluster),
            proxies=self.proxies.get(cluster, ()),
            seed=chosen.seed,
        )
