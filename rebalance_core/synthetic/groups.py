"""One consumer group: its size, its settings, its strategy, what it shares and its habits."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
    PULL_MODE,
    PUSH,
    GroupSettings,
    RequestMode,
)
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS
from rebalance_core.strategies import make_strategy
from rebalance_core.synthetic.clusters import Cluster, cluster_of
from rebalance_core.synthetic.draws import Draws, Mix, group_name
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.topics import Topic, popular_topics, topic_of

# Which allocation strategy a group has, as text; rooms are those of its brokers and clients.

STRATEGIES: Mix[str] = (
    ("AVG", 80), ("AVG_BY_CIRCLE", 8), ("CONSISTENT_HASH", 9), ("CONFIG", 0.5),
)  # fmt: skip
STRATEGIES_WITH_ROOMS: Mix[str] = (
    ("AVG", 55), ("AVG_BY_CIRCLE", 6), ("CONSISTENT_HASH", 6), ("CONFIG", 0.3),
    ("MACHINE_ROOM_NEARBY-AVG", 26), ("MACHINE_ROOM", 6),
)  # fmt: skip
VIRTUAL_NODES: Mix[int] = ((10, 8), (100, 2), (1, 0.5))
ONE_ROOM_CHANCE = 0.2  # of MACHINE_ROOM: the other rooms' queues have no owner
MOST_CONFIG_MEMBERS = 8  # a list of queues for each member is kept by hand


def strategy_text(draws: Draws, cluster: Cluster, topics: Sequence[Topic], size: int) -> str:
    """The text of a group's strategy.

    A CONFIG group's own text has no list: each of its members brings its own, see `config_text`.
    """
    name = draws.mixed(STRATEGIES_WITH_ROOMS if cluster.rooms else STRATEGIES)
    if name == "CONSISTENT_HASH":
        return str(make_strategy(name, {"virtual_nodes": draws.mixed(VIRTUAL_NODES)}))
    if name == "MACHINE_ROOM":
        rooms = cluster.rooms[:1] if draws.chance(ONE_ROOM_CHANCE) else cluster.rooms
        return str(make_strategy(name, {"consumer_idcs": list(rooms)}))
    if name == "MACHINE_ROOM_NEARBY-AVG":
        clients = {f"10.{i + 1}.": room for i, room in enumerate(cluster.rooms)}
        return str(make_strategy(name, {"room_separator": "@", "client_rooms": clients}))
    if name == "CONFIG" and (size > MOST_CONFIG_MEMBERS or not any(t.history for t in topics)):
        return "AVG"
    return name


def config_text(cluster: Cluster, topics: Sequence[Topic], at_ms: int, seat: int, size: int) -> str:
    """The list of one member of a CONFIG group: every size-th queue from its own on."""
    queues = [
        MessageQueue(topic.name, cluster.brokers[broker].name, queue_id)
        for topic in topics
        for broker, config in sorted(topic.configs(at_ms).items())
        for queue_id in range(config.read)
    ]
    return str(make_strategy("CONFIG", {"config": queues[seat % size :: size]}))


# Groups that share topics: those that pop through the brokers, and those behind proxies.

PROXY_CHANCE = 0.03  # of push groups of 5.x
POP_CHANCE = 0.5  # of groups that ask the brokers
SHARE_QUEUE_NUM: Mix[int] = ((-1, 6), (0, 1), (1, 2), (2, 1))
SWITCH_CHANCE = 0.4  # of groups that pop: their mode is set while we look on
BACK_CHANCE = 0.3  # of those: it is taken back some hours later
FIRST_DAYS_MS = 3 * DAY_MS

QueueModes = tuple[tuple[int, RequestMode], ...]
"""When which request mode is set for all topics of a group, in milliseconds from the start."""


def behind_proxy(draws: Draws, settings: GroupSettings) -> GroupSettings:
    """The settings, of some groups as they are behind a proxy."""
    chosen = draws.chance(PROXY_CHANCE)
    fits = settings.consumer_type == PUSH and settings.message_model != BROADCASTING
    if chosen and fits and not settings.client_version.startswith("4"):
        return replace(settings, rebalance_mode=PROXY_REBALANCE, strategy="AVG")
    return settings


def request_modes(draws: Draws, settings: GroupSettings) -> QueueModes:
    """The modes of a group that pops; empty for all others."""
    pops, share = draws.chance(POP_CHANCE), draws.mixed(SHARE_QUEUE_NUM)
    switched, back = draws.chance(SWITCH_CHANCE), draws.chance(BACK_CHANCE)
    at_ms = draws.between(1, FIRST_DAYS_MS)
    back_ms = at_ms + draws.between(1, 12) * HOUR_MS
    if not pops or settings.rebalance_mode != BROKER_REBALANCE:
        return ()
    if not switched:
        return ((0, RequestMode(share)),)
    set_to_pop = (at_ms, RequestMode(share))
    return (set_to_pop, (back_ms, PULL_MODE)) if back else (set_to_pop,)


# One consumer group: its size, its settings and its habits.

FEWEST, MOST = 2, 300
SIZE_EXPONENT = 1.9  # Zipf: k members with weight k^-1.9
SINGLE_CHANCE = 0.06

TOPICS: Mix[int] = ((1, 62), (2, 26), (3, 12))
TRIES = 8
TYPES: Mix[str] = ((PUSH, 88), (LITE_PULL, 9), (PULL, 3))
BROADCASTING_CHANCE = 0.05
ORDERED_CHANCE = 0.1
BROKER_REBALANCE_CHANCE = 0.02
NO_ROW_CHANCE = 0.02  # nobody exported the settings of these
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
    """One group as it is at the start of the trace.

    Attributes:
        settings: what its row in consumer_groups says, or the defaults where it has none.
        has_row: False: there is no row, so members state their topics.
        topics: numbers of its topics in the cluster.
        size: members on an ordinary day.
        naming: where client ids come from, see `Seats`.
        pods: True: every start is on a new address; False: on hosts that stay.
        batch_hour: it only runs from this hour (UTC) on, for an hour or two; None: always.
        swing: share of `size` by which it grows by day and shrinks by night; 0: never.
        difference: what some members have that others have not; None: nothing.
        deploys_per_day: mean number of rolling restarts on a working day.
        lag_ms: how far behind the newest message it reads; None: it never committed anything.
        request_modes: of all its topics; empty: PULL, and never anything else.
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
    """Group ``group`` of the plan (numbered over all clusters)."""
    cluster_number, number = plan.place_of_group(group)
    cluster = cluster_of(plan, cluster_number)
    draws = Draws(plan.seed, "group", group)
    size = _size(draws)
    topics = _topics(plan, cluster_number, draws, size)
    sharing = Draws(plan.seed, "sharing", group)
    settings = behind_proxy(sharing, _settings(plan, draws, cluster, topics, size))
    naming = draws.mixed(NAMING)
    if naming == ONE_FOR_ALL and "NEARBY" in settings.strategy:
        naming = PER_PROCESS  # an address that all share stands in no room
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
    """A group grows with its topics: of a few tries the first that has a queue for each member."""
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
        return None  # proxies know no BROADCASTING
    return difference


def _lag_ms(draws: Draws) -> int | None:
    if draws.chance(NEVER_COMMITTED_CHANCE):
        return None
    return ABANDONED_LAG_MS if draws.chance(ABANDONED_CHANCE) else int(draws.scattered(*LAG_MS))


# Where the processes of a group run, and the client id and channel each start gets
# (rocketmq.md §1.1).

SHARED_ADDRESS = "172.17.0.1"  # docker0: what every container on a host network may report
LONGEST_UPTIME_MS = 200 * DAY_MS
NANOS_PER_MS = 1_000_000
CONTAINER_PID = 1


@dataclass(frozen=True, slots=True)
class FleetProcess:
    """One started consumer as the brokers see it."""

    client_id: str
    channel_id: str


@dataclass(slots=True, eq=False)
class Seat:
    """A host or a pod that runs one consumer of the group, or is about to."""

    number: int
    address: str
    booted_ms: int
    process: FleetProcess | None = None
    removed: bool = False


@dataclass(slots=True)
class Seats:
    """Makes the seats of one group and the processes in them.

    ``addresses`` are those in use; whoever gives up a seat takes its address out.
    """

    group: FleetGroup
    start_ms: int
    draws: Draws
    made: int = 0
    addresses: set[str] = field(default_factory=set)

    def new_seat(self, at_ms: int) -> Seat:
        """A seat on an address that no other seat of the group has now."""
        number, self.made = self.made, self.made + 1
        if self.group.naming == ONE_FOR_ALL:
            return Seat(number, SHARED_ADDRESS, self.start_ms - DAY_MS)
        room = 1 + number % max(1, len(self.group.cluster.rooms))
        address = self._address(room)
        while address in self.addresses:
            address = self._address(room)
        self.addresses.add(address)
        uptime = self.draws.between(DAY_MS, LONGEST_UPTIME_MS)
        return Seat(number, address, min(at_ms, self.start_ms) - uptime)

    def new_process(self, seat: Seat, at_ms: int) -> FleetProcess:
        """Make the process that a start in this seat is.

        Clustering clients without an instance name are ``ip@pid#nanotime``: new at each start. With
        one (`BY_INSTANCE`: a wrapper that sets it to the pid or to a name) they come back with the
        same id on another channel. BROADCASTING ones are ``ip@DEFAULT``.
        """
        pid = CONTAINER_PID if self.group.pods else self.draws.between(400, 65_000)
        instance = self._instance(seat, pid, at_ms)
        ending = "@STREAM" if self.group.settings.consumer_type == LITE_PULL else ""
        return FleetProcess(f"{seat.address}@{instance}{ending}", self.new_channel(seat))

    def new_channel(self, seat: Seat) -> str:
        """A connection from the seat: address and a port of the ephemeral range."""
        return f"{seat.address}:{self.draws.between(32_768, 60_999)}"

    def _instance(self, seat: Seat, pid: int, at_ms: int) -> str:
        if self.group.settings.message_model == BROADCASTING:
            return "DEFAULT"
        if self.group.naming == ONE_FOR_ALL:
            return self.group.name
        if self.group.naming == BY_INSTANCE:
            return str(CONTAINER_PID) if self.group.number % 2 else self.group.name
        nanos = (at_ms - seat.booted_ms) * NANOS_PER_MS + self.draws.between(0, NANOS_PER_MS - 1)
        return f"{pid}#{nanos}"

    def _address(self, room: int) -> str:
        return f"10.{room}.{self.draws.between(0, 255)}.{self.draws.between(1, 254)}"
