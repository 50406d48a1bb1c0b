"""The allocation strategy of a group, as text; rooms are those of its brokers and clients."""

from collections.abc import Sequence

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import make_strategy
from rebalance_core.synthetic.clusters import Cluster
from rebalance_core.synthetic.draws import Draws, Mix
from rebalance_core.synthetic.topics import Topic

STRATEGIES: Mix[str] = (
    ("AVG", 80),
    ("AVG_BY_CIRCLE", 8),
    ("CONSISTENT_HASH", 9),
    ("CONFIG", 0.5),
)
STRATEGIES_WITH_ROOMS: Mix[str] = (
    ("AVG", 55),
    ("AVG_BY_CIRCLE", 6),
    ("CONSISTENT_HASH", 6),
    ("CONFIG", 0.3),
    ("MACHINE_ROOM_NEARBY-AVG", 26),
    ("MACHINE_ROOM", 6),
)
VIRTUAL_NODES: Mix[int] = ((10, 8), (100, 2), (1, 0.5))
ONE_ROOM_CHANCE = 0.2  # for MACHINE_ROOM: the other rooms' queues have no owner
MOST_CONFIG_MEMBERS = 8  # the list of queues of each member is maintained by hand


def strategy_text(draws: Draws, cluster: Cluster, topics: Sequence[Topic], size: int) -> str:
    """Return the text of a group's strategy.

    A CONFIG group's own text has no list, because each member brings its own; see `config_text`.
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
    """Return the list of a member of a CONFIG group: every size-th queue, starting with its own."""
    queues = [
        MessageQueue(topic.name, cluster.brokers[broker].name, queue_id)
        for topic in topics
        for broker, config in sorted(topic.configs(at_ms).items())
        for queue_id in range(config.read)
    ]
    return str(make_strategy("CONFIG", {"config": queues[seat % size :: size]}))
