"""A consumer group: its size, its settings and its habits."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    BROKER_STRATEGIES,
    CLUSTERING,
    LITE_PULL,
    PROXY_REBALANCE,
    PULL,
    PUSH,
    GroupSettings,
)
from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS
from rebalance_core.synthetic.clusters import Cluster, cluster_of
from rebalance_core.synthetic.draws import Draws, Mix
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.group_strategies import strategy_text
from rebalance_core.synthetic.names import group_name
from rebalance_core.synthetic.request_modes import QueueModes, behind_proxy, request_modes
from rebalance_core.synthetic.topics import popular_topics, topic_of

FEWEST, MOST = 2, 300
SIZE_EXPONENT = 1.9  # Zipf: k members with weight k^-1.9
SINGLE_CHANCE = 0.06

TOPICS: Mix[int] = ((1, 62), (2, 26), (3, 12))
TRIES = 8
TYPES: Mix[str] = ((PUSH, 88), (LITE_PULL, 9), (PULL, 3))
BROADCASTING_CHANCE = 0.05
ORDERED_CHANCE = 0.1
BROKER_REBALANCE_CHANCE = 0.02
NO_ROW_CHANCE = 0.02  # groups whose settings were not exported
THRESHOLD_CHANCE = 0.05
FROM_WHERE: Mix[str] = (
    ("CONSUME_FROM_LAST_OFFSET", 78),
    ("CONSUME_FROM_FIRST_OFFSET", 15),
    ("CONSUME_FROM_TIMESTAMP", 6),
    ("CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST", 1),
)
CLIENT_VERSIONS: Mix[str] = (
    ("4.9.4", 2), ("4.9.7", 3), ("4.9.8", 1), ("5.0.0", 0.5), ("5.1.0", 0.5), ("5.1.4", 2),
    ("5.2.0", 1), ("5.3.0", 1), ("5.3.1", 2), ("5.3.3", 3),
)  # fmt: skip

PER_PROCESS, BY_INSTANCE, ONE_FOR_ALL = "PER_PROCESS", "BY_INSTANCE", "ONE_FOR_ALL"
NAMING: Mix[str] = ((PER_PROCESS, 88), (BY_INSTANCE, 11.8), (ONE_FOR_ALL, 0.2))
POD_CHANCE = 0.65
BATCH_CHANCE = 0.03
AUTOSCALE_CHANCE = 0.2
DIFFERENCES: Mix[str | None] = (
    (None, 98.0), ("SUBSCRIPTIONS", 1.5), ("STRATEGY", 0.2), ("MESSAGE_MODEL", 0.1),
    ("CONSUME_FROM_WHERE", 0.2),
)  # fmt: skip
DEPLOYS_PER_DAY = (0.1, 5.6)
NEVER_COMMITTED_CHANCE = 0.03
ABANDONED_CHANCE = 0.01
LAG_MS = (200.0, 20.0 * MINUTE_MS)
ABANDONED_LAG_MS = 6 * DAY_MS


@dataclass(frozen=True, slots=True)
class FleetGroup:
    """A group at the start of the trace.

    Attributes:
        settings: the settings in its row of consumer_groups, or the defaults without a row.
        has_row: whether it has a row; otherwise members state their topics.
        topics: numbers of its topics in the cluster.
        size: members on an ordinary day.
        naming: the source of client ids, see `Seats`.
        pods: True if every start gets a new address; False for permanent hosts.
        batch_hour: it runs for an hour or two from this hour (UTC) on; None if it always runs.
        swing: share of `size` by which it grows by day and shrinks by night; 0 for never.
        difference: settings that only some members have, or None.
        deploys_per_day: mean number of rolling restarts on a working day.
        lag_ms: how far behind the newest message it reads; None if it never committed.
        request_modes: the request modes of all its topics; empty for PULL throughout.
    """

    cluster: Cluster
    number: int
    name: str
    settings: GroupSettings
    has_row: bool
    topics: tuple[int, ...]
    size: int
    naming: str
    pods: bool
    batch_hour: int | None
    swing: float
    difference: str | None
    deploys_per_day: float
    lag_ms: int | None
    request_modes: QueueModes


@lru_cache(maxsize=1)
def _sizes() -> tuple[float, ...]:
    return tuple(accumulate(k**-SIZE_EXPONENT for k in range(FEWEST, MOST + 1)))


def group_of(plan: FleetPlan, group: int) -> FleetGroup:
    """Return group ``group`` of the plan (numbered over all clusters)."""
    cluster_number, number = plan.place_of_group(group)
    cluster = cluster_of(plan, cluster_number)
    draws = Draws(plan.seed, "group", group)
    size = _size(draws)
    topics = _topics(plan, cluster_number, draws, size)
    sharing = Draws(plan.seed, "sharing", group)
    settings = behind_proxy(sharing, _settings(plan, draws, cluster, topics, size))
    naming = draws.mixed(NAMING)
    if naming == ONE_FOR_ALL and "NEARBY" in settings.strategy:
        naming = PER_PROCESS  # an address that all members share belongs to no room
    fixed = settings.message_model == BROADCASTING or settings.strategy.startswith("CONFIG")
    batch = draws.chance(BATCH_CHANCE)
    has_row = not draws.chance(NO_ROW_CHANCE)
    if not has_row:
        settings = GroupSettings(subscriptions=settings.subscriptions)
    return FleetGroup(
        cluster=cluster,
        number=number,
        name=group_name(plan.seed, cluster_number, number),
        settings=settings,
        has_row=has_row,
        topics=topics,
        size=min(size, 20) if naming == ONE_FOR_ALL else size,
        naming=naming,
        pods=draws.chance(POD_CHANCE) and not fixed and naming != ONE_FOR_ALL,
        batch_hour=draws.between(0, 5) if batch else None,
        swing=draws.scattered(0.2, 1.0) if draws.chance(AUTOSCALE_CHANCE) and not fixed else 0.0,
        difference=_difference(draws, settings, size),
        deploys_per_day=draws.scattered(*DEPLOYS_PER_DAY),
        lag_ms=_lag_ms(draws),
        request_modes=request_modes(sharing, settings),
    )


def _size(draws: Draws) -> int:
    if draws.chance(SINGLE_CHANCE):
        return 1
    wanted = draws.random() * _sizes()[-1]
    return FEWEST + next(i for i, total in enumerate(_sizes()) if total > wanted)


def _topics(plan: FleetPlan, cluster: int, draws: Draws, size: int) -> tuple[int, ...]:
    """Return the group's topics: the first of a few draws that has a queue for each member."""
    best: tuple[int, ...] = ()
    most = -1
    count = draws.mixed(TOPICS)
    for _ in range(TRIES):
        topics = popular_topics(plan, cluster, draws, count)
        configs = [topic_of(plan, cluster, topic).configs(plan.start_ms) for topic in topics]
        queues = sum(config.read for by_broker in configs for config in by_broker.values())
        if queues > most:
            best, most = topics, queues
        if queues >= size:
            break
    return best


def _settings(
    plan: FleetPlan, draws: Draws, cluster: Cluster, topics: tuple[int, ...], size: int
) -> GroupSettings:
    consumer_type = draws.mixed(TYPES)
    version = draws.mixed(CLIENT_VERSIONS)
    broadcasting = draws.chance(BROADCASTING_CHANCE) and consumer_type == PUSH
    ordered = draws.chance(ORDERED_CHANCE) and consumer_type == PUSH and not broadcasting
    subscribed = [topic_of(plan, cluster.number, topic) for topic in topics]
    strategy = "AVG" if broadcasting else strategy_text(draws, cluster, subscribed, size)
    from_where = draws.mixed(FROM_WHERE)
    if consumer_type == LITE_PULL and from_where.endswith("BOOT_FIRST"):
        from_where = "CONSUME_FROM_LAST_OFFSET"  # LitePull's setter refuses the old modes
    at_broker = draws.chance(BROKER_REBALANCE_CHANCE) and not (ordered or broadcasting)
    at_broker = at_broker and consumer_type == PUSH and not version.startswith("4")
    limited = draws.chance(THRESHOLD_CHANCE)
    since_ms = plan.start_ms - draws.between(1, 96) * HOUR_MS
    return GroupSettings(
        consumer_type=consumer_type,
        message_model=BROADCASTING if broadcasting else CLUSTERING,
        strategy=strategy,
        subscriptions=tuple(sorted(topic.name for topic in subscribed)),
        consume_from_where=from_where,
        consume_timestamp_ms=since_ms if from_where == "CONSUME_FROM_TIMESTAMP" else None,
        ordered=ordered,
        client_version=version,
        broker_version=cluster.version,
        rebalance_mode=(
            BROKER_REBALANCE if at_broker and strategy in BROKER_STRATEGIES else "CLIENT"
        ),
        pull_threshold_for_queue=draws.pick((1000, 1000, 1000, 500, 2000)),
        pull_threshold_for_topic=draws.pick((2000, 5000, 10_000)) if limited else -1,
        pull_threshold_size_for_topic=draws.pick((-1, 200, 500)) if limited else -1,
    )


def _difference(draws: Draws, settings: GroupSettings, size: int) -> str | None:
    difference = draws.mixed(DIFFERENCES) if size > 1 else None
    if difference == "MESSAGE_MODEL" and settings.rebalance_mode == PROXY_REBALANCE:
        return None  # proxies do not support BROADCASTING
    return difference


def _lag_ms(draws: Draws) -> int | None:
    if draws.chance(NEVER_COMMITTED_CHANCE):
        return None
    return ABANDONED_LAG_MS if draws.chance(ABANDONED_CHANCE) else int(draws.scattered(*LAG_MS))
