"""Realistic names, each unique within a cluster thanks to the number that it is made from."""

from rebalance_core.synthetic.draws import Draws

REGIONS = ("prod-east", "prod-west", "prod-north", "prod-south", "core", "pay-cell", "logs")
DOMAINS = (
    "order",
    "payment",
    "stock",
    "user",
    "coupon",
    "search",
    "delivery",
    "risk",
    "billing",
    "message",
    "report",
    "device",
)
THINGS = ("event", "status", "change", "sync", "task", "notice", "refund", "index")
VERBS = ("created", "paid", "closed", "updated", "failed", "expired", "retry", "snapshot")
SERVICES = ("worker", "service", "writer", "loader", "audit", "push", "cache", "stats")

_COMBINATIONS = len(DOMAINS) * len(THINGS) * len(VERBS)
_STRIDE = 307  # coprime with the number of combinations, so each occurs once before any repeats


def cluster_name(number: int) -> str:
    """Return the unique name of a cluster."""
    return f"{REGIONS[number % len(REGIONS)]}-{number // len(REGIONS) + 1:02d}"


def topic_name(seed: int, cluster: int, number: int) -> str:
    """Return the name of a topic, unique in its cluster."""
    domain, thing, verb, more = _words(seed, "topic-names", cluster, number, VERBS)
    name = f"{domain}_{thing}_{verb}{more}"
    return name.upper() if number % 3 == 0 else name


def group_name(seed: int, cluster: int, number: int) -> str:
    """Return the name of a consumer group, unique in its cluster."""
    domain, thing, service, more = _words(seed, "group-names", cluster, number, SERVICES)
    form = ("GID_{0}_{1}_{2}{3}", "{0}-{1}-{2}{3}", "cg_{0}_{1}_{2}{3}")[number % 3]
    return form.format(domain, thing, service, more)


def broker_names(draws: Draws, count: int, rooms: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a cluster's brokers.

    In a cluster with machine rooms they are ``room@name``, as MACHINE_ROOM requires; the rooms
    alternate.
    """
    form = draws.pick(("broker-{0}", "broker-{0}", "mq-{1:02d}", "rmq{1}"))
    plain = [form.format(chr(ord("a") + i), i + 1) for i in range(count)]
    if not rooms:
        return tuple(plain)
    return tuple(f"{rooms[i % len(rooms)]}@{name}" for i, name in enumerate(plain))


def _words(
    seed: int, kind: str, cluster: int, number: int, last: tuple[str, ...]
) -> tuple[str, str, str, str]:
    shift = Draws(seed, kind, cluster).between(0, _COMBINATIONS - 1)
    turn, place = divmod(number, _COMBINATIONS)
    index = (place * _STRIDE + shift) % _COMBINATIONS
    index, word = divmod(index, len(last))
    index, thing = divmod(index, len(THINGS))
    return DOMAINS[index], THINGS[thing], last[word], f"_{turn + 1}" if turn else ""
