"""Settings of each group, with RocketMQ's defaults, and which kernel divides its queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels.codes import eligibility
from rebalance_core.kernels.codes.columns import EVENTS, GROUPS, Columns, Key, list_pointers
from rebalance_core.kernels.codes.divisions import Divisions, find_divisions, strategies_of_groups
from rebalance_core.kernels.codes.topic_sets import TopicSets
from rebalance_core.kernels.segments import Bools, Ints, pointers, sums
from rebalance_core.model.events import CONSUMER_JOIN
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    BROKER_STRATEGIES,
    LITE_PULL,
    PROXY_REBALANCE,
    PULL,
    PUSH,
    GroupSettings,
)
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.members import asks_broker
from rebalance_core.protocol.start_offset import (
    EXACT_LOWER_BOUND,
    OVERFLOW_ALWAYS_TO_MAX,
    PAGE_CACHE_CHECK,
)
from rebalance_core.strategies import AllocationStrategy

StrategyFor = Callable[[tuple[str, str]], AllocationStrategy]

TYPES = (PUSH, LITE_PULL, PULL)
DEFAULTS = GroupSettings()
OWN_WORDS = {
    "strategy": "strategy",
    "version": "client_version",
    "message_model": "message_model",
    "consume_from_where": "consume_from_where",
    "rebalance_mode": "rebalance_mode",
}
"""What a CONSUMER_JOIN may say of its member, and the group's setting where it does not."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Arrays with one value a group."""

    retry_topic: Ints
    subscriptions: Ints
    """Number of the set that members take who state none."""
    strategy: Ints
    version: Ints
    message_model: Ints
    consume_from_where: Ints
    rebalance_mode: Ints
    """Words of the group's own settings."""
    consumer_type: Ints
    """Index into `TYPES`."""
    has_retry: Bools
    """Members subscribe the retry topic (rocketmq.md §3.4)."""
    ordered: Bools
    timestamp_ms: Ints
    """-1: none."""
    pull_threshold_for_queue: Ints
    pull_threshold_size_for_queue: Ints
    pull_threshold_for_topic: Ints
    pull_threshold_size_for_topic: Ints
    broker_version: Ints
    """Word; of brokers that no BROKER_UP names a version of."""
    empty_queue_is_zero: Bools
    """The broker answers 0 for a queue without messages."""
    exact_search: Bools
    overflow_to_max: Bools
    """What the broker's version makes of a timestamp search and of an offset past the end."""
    kind: Ints
    """Index into `eligibility.KINDS`, `eligibility.EVERYONE` or `eligibility.NO_KIND`."""
    allocation: Ints
    """Index into the strategies of the coded, of members with several the first one that divides;
    -1: none does."""
    reason: Ints
    """Index into `eligibility.REASONS`."""

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, order: Ints) -> Groups:
        """The groups in another order."""
        return replace(self, **{f.name: getattr(self, f.name)[order] for f in fields(self)})


def words_of(tables: Mapping[str, Columns], override: str | None) -> dict[Key, pa.StringArray]:
    """Every column of words: of the events as they are, of the groups with their defaults."""
    columns = {(EVENTS, name): tables[EVENTS].given(name) for name in OWN_WORDS}
    for name in (*OWN_WORDS.values(), "broker_version"):
        columns[GROUPS, name] = pc.fill_null(tables[GROUPS].given(name), getattr(DEFAULTS, name))
    if override is not None:
        for table in (EVENTS, GROUPS):
            columns[table, "strategy"] = pa.repeat(pa.scalar(override), len(tables[table]))
    return columns


def read_groups(
    given: Columns,
    codes: Mapping[Key, Ints],
    words: pa.StringArray,
    sets: TopicSets,
    *,
    retry: bool,
) -> Groups:
    """The settings of every group; kind, allocation and reason are `divided`'s.

    Args:
        given: consumer_groups with one row a group, null where the group has none.
        codes: of the names in all columns.
        words: what the codes of words stand for.
        sets: gets the groups' subscriptions.
        retry: there are retry topics at all.
    """
    count = len(given)
    texts = words.to_pylist()
    broker = [parse_version(texts[code]) for code in codes[GROUPS, "broker_version"].tolist()]
    type_of = np.select([given.equal("consumer_type", name) for name in TYPES], range(3), 0)
    return Groups(
        retry_topic=codes[GROUPS, "retry"],
        subscriptions=sets.numbers(
            codes[GROUPS, "subscriptions"],
            list_pointers(given.lists("subscriptions")),
            codes[GROUPS, "retry"],
        ),
        **{own: codes[GROUPS, name] for own, name in OWN_WORDS.items()},
        consumer_type=type_of.astype(np.int64),
        has_retry=(type_of == TYPES.index(PUSH)) & retry,
        ordered=given.bools("ordered", null=DEFAULTS.ordered),
        timestamp_ms=given.ints("consume_timestamp_ms", null=-1),
        **{name: given.ints(name, null=getattr(DEFAULTS, name)) for name in _THRESHOLDS},
        broker_version=codes[GROUPS, "broker_version"],
        empty_queue_is_zero=np.array([v < PAGE_CACHE_CHECK for v in broker], np.bool_),
        exact_search=np.array([v >= EXACT_LOWER_BOUND for v in broker], np.bool_),
        overflow_to_max=np.array([v >= OVERFLOW_ALWAYS_TO_MAX for v in broker], np.bool_),
        kind=np.zeros(count, np.int64),
        allocation=np.full(count, -1, np.int64),
        reason=np.full(count, eligibility.REGULAR, np.int64),
    )


_THRESHOLDS = (
    "pull_threshold_for_queue",
    "pull_threshold_size_for_queue",
    "pull_threshold_for_topic",
    "pull_threshold_size_for_topic",
)


def divided(
    groups: Groups,
    tables: Mapping[str, Columns],
    group: Ints,
    codes: Mapping[Key, Ints],
    words: pa.StringArray,
    strategy_for: StrategyFor,
) -> tuple[Groups, tuple[AllocationStrategy, ...], Divisions]:
    """The groups with their kind, the strategies that `Groups.allocation` counts, and whose they
    are.

    Args:
        groups: as `read_groups` gives them.
        tables: all input tables.
        group: number of the group of each row of cluster_events.
        codes: of the names in all columns.
        words: what the codes of words stand for.
        strategy_for: (strategy text, client version) -> strategy.
    """
    joins = np.flatnonzero(tables[EVENTS].equal("event_type", CONSUMER_JOIN))
    of = group[joins]
    order = np.argsort(of, kind="stable")
    joins, of = joins[order], of[order]
    own = {
        name: _own(codes[EVENTS, name][joins], getattr(groups, name)[of])
        for name in ("strategy", "version", "message_model", "rebalance_mode")
    }
    strategies, allocation = _resolve(own["strategy"], own["version"], words, strategy_for)
    kinds = np.array([*map(eligibility.kind_of, strategies), eligibility.NO_KIND], np.int64)
    broadcasting = pc.index(words, BROADCASTING).as_py()
    lists = kinds[allocation] == eligibility.LISTED
    reads_all = own["message_model"] == broadcasting
    behind_proxy = own["rebalance_mode"] == pc.index(words, PROXY_REBALANCE).as_py()
    divisions = find_divisions(
        of, own["strategy"], own["version"], allocation, reads_all, lists, reads_all | behind_proxy
    )
    bounds = pointers(np.bincount(of, minlength=len(groups)))
    unknown = sums(~reads_all & (kinds[allocation] == eligibility.NO_KIND), bounds) > 0
    everyone = (sums(reads_all, bounds) > 0) & (sums(~reads_all, bounds) == 0)
    foreign = np.array([s.name not in BROKER_STRATEGIES for s in strategies], np.bool_)[allocation]
    foreign &= own["rebalance_mode"] == pc.index(words, BROKER_REBALANCE).as_py()
    refused = _refused(groups, of[foreign], {n: codes[foreign] for n, codes in own.items()}, words)
    first = divisions.of_number(0, len(groups))
    listing = np.isin(np.arange(len(groups)), divisions.listing)
    kind = np.select(
        [everyone, refused | unknown, first >= 0, listing],
        [eligibility.EVERYONE, eligibility.NO_KIND, kinds[first], eligibility.LISTED],
        eligibility.NO_KIND,
    )
    strategies_of = strategies_of_groups(divisions, len(groups))
    unstated, of_group = (
        tables[name].lists("subscriptions").is_null().to_numpy(zero_copy_only=False)
        for name in (EVENTS, GROUPS)
    )
    unstated = unstated & of_group[group]
    reason = np.select(
        [
            refused | unknown,
            strategies_of > eligibility.MOST_STRATEGIES,
            sums(reads_all & behind_proxy, bounds) > 0,
            sums(unstated[joins], bounds) > 0,
        ],
        [
            eligibility.NO_KERNEL,
            eligibility.MANY_STRATEGIES,
            eligibility.BROADCASTING_PROXY,
            eligibility.SUBSCRIPTION_UNKNOWN,
        ],
        eligibility.REGULAR,
    )
    retrying = sums(~reads_all & ~behind_proxy, bounds) > 0
    settled = replace(
        groups, kind=kind, allocation=first, reason=reason, has_retry=groups.has_retry & retrying
    )
    return settled, tuple(strategies), divisions


def _refused(groups: Groups, of: Ints, own: Mapping[str, Ints], words: pa.StringArray) -> Bools:
    """Groups with a member that asks brokers to divide by a strategy they do not know
    (rocketmq.md §2.8).

    Args:
        groups: all of them.
        of: the group of each join with such a strategy and the rebalance mode BROKER.
        own: codes of these members' own words.
        words: what the codes stand for.
    """
    refused = np.zeros(len(groups), np.bool_)
    texts = words.to_pylist()
    for group, model, version in zip(of, own["message_model"], own["version"], strict=True):
        refused[group] |= asks_broker(
            BROKER_REBALANCE,
            TYPES[groups.consumer_type[group]],
            texts[model],
            bool(groups.ordered[group]),
            texts[version],
        )
    return refused


def _own(said: Ints, default: Ints) -> Ints:
    return np.where(said < 0, default, said)


def _resolve(
    texts: Ints, versions: Ints, words: pa.StringArray, strategy_for: StrategyFor
) -> tuple[list[AllocationStrategy], Ints]:
    """The distinct strategies, and the index of each row's."""
    pairs, row_of = np.unique(texts * len(words) + versions, return_inverse=True)
    names = words.to_pylist()
    found: dict[AllocationStrategy, int] = {}
    indexes = []
    for text, version in zip(
        *(part.tolist() for part in np.divmod(pairs, len(words))), strict=True
    ):
        strategy = strategy_for((names[text], names[version]))
        indexes.append(found.setdefault(strategy, len(found)))
    return list(found), np.array(indexes, np.int64)[row_of]
