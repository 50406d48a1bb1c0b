"""The settings of each group, with RocketMQ's defaults, and the kernel that divides its queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels import segments
from rebalance_core.kernels.group_kinds import (
    BROADCAST,
    BROADCASTING_PROXY,
    CONFIGURED,
    MANY_STRATEGIES,
    MOST_STRATEGIES,
    NO_KERNEL,
    NOT_VECTORIZED,
    OWN_INTERVALS,
    REGULAR,
    SUBSCRIPTION_UNKNOWN,
    kinds_of,
)
from rebalance_core.kernels.member_strategies import (
    MemberStrategies,
    find_member_strategies,
    strategies_of_groups,
)
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.table_columns import EVENTS, GROUPS, Columns, Key, list_pointers
from rebalance_core.kernels.topic_sets import TopicSets
from rebalance_core.model.clients import member_profile, rules_version
from rebalance_core.model.events import CONSUMER_JOIN
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    BROKER_STRATEGIES,
    CONSUMER_TYPES,
    PROXY_REBALANCE,
    PUSH,
    GroupSettings,
)
from rebalance_core.model.intervals import INTERVALS
from rebalance_core.model.languages import JAVA
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.broker_offset_reply import PAGE_CACHE_CHECK
from rebalance_core.protocol.first_pull import OVERFLOW_ALWAYS_TO_MAX
from rebalance_core.protocol.pop_start import POPS_FROM_MEMORY
from rebalance_core.protocol.query_assignment import asks_broker
from rebalance_core.protocol.settling_windows import PASS_MS
from rebalance_core.protocol.timestamp_search import EXACT_LOWER_BOUND
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.texts import own_strategy

StrategyFor = Callable[[tuple[str, str]], AllocationStrategy]

TYPES = CONSUMER_TYPES
DEFAULTS = GroupSettings()
OWN_WORDS = {
    "strategy": "strategy",
    "version": "client_version",
    "message_model": "message_model",
    "consume_from_where": "consume_from_where",
    "rebalance_mode": "rebalance_mode",
    "rules": "client_version",
}
"""The settings that a CONSUMER_JOIN may state for its member, with the group's setting as the
default.

``rules`` is the version whose rules the member follows; it differs from the stated version if its
client is in another language.
"""


@dataclass(frozen=True, slots=True)
class Groups:
    """The settings of groups, as arrays with one value per group."""

    retry_topic: Ints
    subscriptions: Ints
    """The number of the topic set of members without subscriptions of their own."""
    strategy: Ints
    version: Ints
    message_model: Ints
    consume_from_where: Ints
    rebalance_mode: Ints
    rules: Ints
    """The words of the group's own settings."""
    consumer_type: Ints
    """The index into `TYPES`."""
    has_retry: Bools
    """Whether members subscribe to the retry topic (rocketmq.md §3.4)."""
    ordered: Bools
    timestamp_ms: Ints
    """-1: none."""
    pull_threshold_for_queue: Ints
    pull_threshold_size_for_queue: Ints
    pull_threshold_for_topic: Ints
    pull_threshold_size_for_topic: Ints
    broker_version: Ints
    """The word of the version of brokers whose version no BROKER_UP states."""
    empty_queue_is_zero: Bools
    """Whether the broker answers 0 for a queue without messages."""
    exact_search: Bools
    pops_from_memory: Bools
    overflow_to_max: Bools
    """How the broker's version answers a timestamp search, a first pop, and an offset past the
    end.
    """
    intervals: Ints
    """(groups, `INTERVALS`), ms."""
    notified: Bools
    kind: Ints
    """`BROADCAST`, `NOT_VECTORIZED` or a kind from `kinds_of`."""
    allocation: Ints
    """The index into `encoded_groups.EncodedGroups.strategies`: the first strategy with an
    allocation if a group has several; -1: there is none.
    """
    reason: Ints
    """The index into `REASONS`."""

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def route_ms(self) -> Ints:
        """Return the time in ms that members of each group may take to act on a route change."""
        wait, least, poll, *_ = self.intervals.T
        return poll + wait + least + PASS_MS

    def take(self, order: Ints) -> Groups:
        """Return the groups in the given order."""
        return replace(self, **{f.name: getattr(self, f.name)[order] for f in fields(self)})


def words_of(
    tables: Mapping[str, Columns], group: Ints, override: str | None
) -> dict[Key, pa.StringArray]:
    """Return every column of words: events unchanged, groups with their defaults.

    Members in other languages get their client's strategy and ``rules``.

    Args:
        tables: all input tables; the groups' table has one row per group.
        group: the number of each event's group.
        override: the strategy text for all members.
    """
    columns = {(EVENTS, name): tables[EVENTS].given(name) for name in (*OWN_WORDS, LANGUAGE_WORD)}
    columns[EVENTS, "rules"] = columns[EVENTS, "version"]
    for name in (*OWN_WORDS.values(), "broker_version"):
        columns[GROUPS, name] = pc.fill_null(tables[GROUPS].given(name), getattr(DEFAULTS, name))
    if override is not None:
        for table in (EVENTS, GROUPS):
            columns[table, "strategy"] = pa.repeat(pa.scalar(override), len(tables[table]))
    others = np.flatnonzero(_of_other_languages(columns[EVENTS, LANGUAGE_WORD]))
    if len(others):
        replaced = _words_of_others(columns, others, group[others])
        for name, texts in replaced.items():
            columns[EVENTS, name] = _with(columns[EVENTS, name], others, texts)
    return columns


LANGUAGE_WORD = "language"


def _of_other_languages(languages: pa.StringArray) -> Bools:
    is_other: Bools = pc.fill_null(pc.not_equal(languages, JAVA), False).to_numpy(
        zero_copy_only=False
    )
    return is_other


def _words_of_others(
    columns: Mapping[Key, pa.StringArray], rows: Ints, group: Ints
) -> dict[str, list[str]]:
    """Return the strategy and the rules of members in other languages, as `replay` determines them.

    Args:
        columns: all words.
        rows: the events of these members.
        group: the group number of each of these.
    """
    member_words = (
        pc.coalesce(
            columns[EVENTS, name].take(pa.array(rows)),
            columns[GROUPS, OWN_WORDS[name]].take(pa.array(group)),
        ).to_pylist()
        for name in ("version", "rebalance_mode", "strategy")
    )
    languages = columns[EVENTS, LANGUAGE_WORD].take(pa.array(rows)).to_pylist()
    words: dict[str, list[str]] = {"strategy": [], "rules": []}
    for language, version, mode, strategy in zip(languages, *member_words, strict=True):
        profile = member_profile(language, version, mode)
        words["strategy"].append(own_strategy(profile, strategy))
        words["rules"].append(rules_version(language, version))
    return words


def _with(column: pa.StringArray, rows: Ints, texts: Sequence[str]) -> pa.StringArray:
    """Return the column with the strings of some rows replaced."""
    chosen = np.zeros(len(column), np.bool_)
    chosen[rows] = True
    return pc.replace_with_mask(column, pa.array(chosen), pa.array(texts, pa.string()))


def read_groups(
    table: Columns,
    codes: Mapping[Key, Ints],
    words: pa.StringArray,
    sets: TopicSets,
    *,
    retry: bool,
) -> Groups:
    """Return every group's settings; `divided` sets kind, allocation and reason.

    Args:
        table: consumer_groups with one row per group, null where the group has none.
        codes: the codes of the names in all columns.
        words: the strings that codes stand for.
        sets: receives the groups' subscriptions.
        retry: whether retry topics are included.
    """
    count = len(table)
    texts = words.to_pylist()
    broker = [parse_version(texts[code]) for code in codes[GROUPS, "broker_version"].tolist()]
    type_of = np.select([table.equal("consumer_type", name) for name in TYPES], range(3), 0)
    return Groups(
        retry_topic=codes[GROUPS, "retry"],
        subscriptions=sets.numbers(
            codes[GROUPS, "subscriptions"],
            list_pointers(table.lists("subscriptions")),
            codes[GROUPS, "retry"],
        ),
        **{word: codes[GROUPS, name] for word, name in OWN_WORDS.items()},
        consumer_type=type_of.astype(np.int64),
        has_retry=(type_of == TYPES.index(PUSH)) & retry,
        ordered=table.bools("ordered", null=DEFAULTS.ordered),
        timestamp_ms=table.ints("consume_timestamp_ms", null=-1),
        **{name: table.ints(name, null=getattr(DEFAULTS, name)) for name in _THRESHOLDS},
        broker_version=codes[GROUPS, "broker_version"],
        empty_queue_is_zero=np.array([v < PAGE_CACHE_CHECK for v in broker], np.bool_),
        exact_search=np.array([v >= EXACT_LOWER_BOUND for v in broker], np.bool_),
        pops_from_memory=np.array([v >= POPS_FROM_MEMORY for v in broker], np.bool_),
        overflow_to_max=np.array([v >= OVERFLOW_ALWAYS_TO_MAX for v in broker], np.bool_),
        intervals=np.stack([table.ints(n, null=getattr(DEFAULTS, n)) for n in INTERVALS], axis=1),
        notified=table.bools("notified", null=DEFAULTS.notified),
        kind=np.zeros(count, np.int64),
        allocation=np.full(count, -1, np.int64),
        reason=np.full(count, REGULAR, np.int64),
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
) -> tuple[Groups, tuple[AllocationStrategy, ...], MemberStrategies]:
    """Return the groups with their kinds, the strategies that they index, and the members'
    strategies.

    Args:
        groups: as returned by `read_groups`.
        tables: all input tables.
        group: the group number of each row of cluster_events.
        codes: the codes of the names in all columns.
        words: the strings that codes stand for.
        strategy_for: (strategy text, client version) -> strategy.
    """
    joins = np.flatnonzero(tables[EVENTS].equal("event_type", CONSUMER_JOIN))
    of = group[joins]
    order = np.argsort(of, kind="stable")
    joins, of = joins[order], of[order]
    encoded = {
        name: _own(codes[EVENTS, name][joins], getattr(groups, name)[of])
        for name in ("strategy", "rules", "message_model", "rebalance_mode")
    }
    strategies, allocation = _resolve(encoded["strategy"], encoded["rules"], words, strategy_for)
    kinds = kinds_of(strategies)
    broadcasting = pc.index(words, BROADCASTING).as_py()
    lists = kinds[allocation] == CONFIGURED
    reads_all = encoded["message_model"] == broadcasting
    behind_proxy = encoded["rebalance_mode"] == pc.index(words, PROXY_REBALANCE).as_py()
    member_strategies = find_member_strategies(
        of,
        encoded["strategy"],
        encoded["rules"],
        allocation,
        reads_all,
        lists,
        reads_all | behind_proxy,
    )
    bounds = segments.pointers(np.bincount(of, minlength=len(groups)))
    unknown = segments.sums(~reads_all & (kinds[allocation] == NOT_VECTORIZED), bounds) > 0
    everyone = (segments.sums(reads_all, bounds) > 0) & (segments.sums(~reads_all, bounds) == 0)
    foreign = np.array([s.name not in BROKER_STRATEGIES for s in strategies], np.bool_)[allocation]
    foreign &= encoded["rebalance_mode"] == pc.index(words, BROKER_REBALANCE).as_py()
    refused = _refused(
        groups, of[foreign], {n: codes[foreign] for n, codes in encoded.items()}, words
    )
    first = member_strategies.of_number(0, len(groups))
    listing = np.isin(np.arange(len(groups)), member_strategies.listing)
    kind = np.select(
        [everyone, refused | unknown, first >= 0, listing],
        [BROADCAST, NOT_VECTORIZED, kinds[first], CONFIGURED],
        NOT_VECTORIZED,
    )
    strategies_of = strategies_of_groups(member_strategies, len(groups))
    unstated, of_group = (
        tables[name].lists("subscriptions").is_null().to_numpy(zero_copy_only=False)
        for name in (EVENTS, GROUPS)
    )
    unstated = unstated & of_group[group]
    stated = np.stack([tables[EVENTS].ints(name)[joins] for name in INTERVALS], axis=1)
    own_timers = ((stated >= 0) & (stated != groups.intervals[of])).any(axis=1)
    reason = np.select(
        [
            refused | unknown,
            strategies_of > MOST_STRATEGIES,
            segments.sums(reads_all & behind_proxy, bounds) > 0,
            segments.sums(unstated[joins], bounds) > 0,
            segments.sums(own_timers, bounds) > 0,
        ],
        [NO_KERNEL, MANY_STRATEGIES, BROADCASTING_PROXY, SUBSCRIPTION_UNKNOWN, OWN_INTERVALS],
        REGULAR,
    )
    retrying = segments.sums(~reads_all & ~behind_proxy, bounds) > 0
    settled = replace(
        groups, kind=kind, allocation=first, reason=reason, has_retry=groups.has_retry & retrying
    )
    return settled, tuple(strategies), member_strategies


def _refused(groups: Groups, of: Ints, encoded: Mapping[str, Ints], words: pa.StringArray) -> Bools:
    """Mark groups whose members ask brokers for a strategy that brokers lack (rocketmq.md §2.8).

    Args:
        groups: all groups.
        of: the group of each join with such a strategy and the rebalance mode BROKER.
        encoded: the codes of these members' own words.
        words: the strings that codes stand for.
    """
    refused = np.zeros(len(groups), np.bool_)
    texts = words.to_pylist()
    for group, model, version in zip(of, encoded["message_model"], encoded["rules"], strict=True):
        refused[group] |= asks_broker(
            BROKER_REBALANCE,
            TYPES[groups.consumer_type[group]],
            texts[model],
            bool(groups.ordered[group]),
            texts[version],
        )
    return refused


def _own(stated: Ints, default: Ints) -> Ints:
    return np.where(stated < 0, default, stated)


def _resolve(
    texts: Ints, versions: Ints, words: pa.StringArray, strategy_for: StrategyFor
) -> tuple[list[AllocationStrategy], Ints]:
    """Return the distinct strategies, and the index of each row's strategy."""
    pairs, row_of = np.unique(texts * len(words) + versions, return_inverse=True)
    names = words.to_pylist()
    number_of: dict[AllocationStrategy, int] = {}
    indexes = []
    for text, version in zip(
        *(part.tolist() for part in np.divmod(pairs, len(words))), strict=True
    ):
        strategy = strategy_for((names[text], names[version]))
        indexes.append(number_of.setdefault(strategy, len(number_of)))
    return list(number_of), np.array(indexes, np.int64)[row_of]
