"""Models of producers for tests, and the plain loop over sends that the simulation must equal."""

from random import Random

from rebalance_core.model.versions import parse_version
from rebalance_core.producers.latencies import (
    FixedLatency,
    Latency,
    LognormalLatency,
    UniformLatency,
)
from rebalance_core.producers.model import (
    BrokerModel,
    BrownOut,
    Outage,
    ProducerGroup,
    ProducerModel,
    Variant,
)
from rebalance_core.producers.tally import Tally
from rebalance_core.producers.thread import SendingThread

FAST = FixedLatency(3)
START_MS = 1_795_000_000_000


def variant(version: str, fault_tolerance: bool) -> Variant:
    return Variant(parse_version(version), fault_tolerance)


def model(
    *disturbances: BrownOut | Outage,
    brokers: tuple[BrokerModel, ...] | None = None,
    seconds: int = 60,
    rate: float = 50,
    clients: int = 1,
    detector: bool = False,
    seed: int = 0,
    its: Variant | None = None,
) -> ProducerModel:
    """Three brokers of four queues, all fast, one group."""
    group = ProducerGroup(
        "p", "orders", clients, rate, its or variant("5.3.3", True), detector=detector
    )
    return ProducerModel(
        name="test",
        description="",
        cluster="c",
        seed=seed,
        start_ms=START_MS,
        length_ms=seconds * 1000,
        slice_ms=10_000,
        brokers=brokers or tuple(BrokerModel(f"broker-{x}", 4, FAST) for x in "abc"),
        disturbances=disturbances,
        groups=(group,),
    )


def walk(world: ProducerModel, its: Variant, number: int = 0) -> Tally:
    """The oracle: every send by itself."""
    thread = SendingThread(world, world.groups[0], number, its)
    tick, last = 0, thread.first_tick(world.length_ms)
    while tick < last:
        thread.enter(thread.time_of(tick))
        _, tick = thread.send_at(tick)
    thread.tally.isolations = list(thread.isolations.all())
    return thread.tally


def random_latency(random: Random) -> Latency:
    kinds: list[Latency] = [
        FAST,
        FixedLatency(random.choice([549, 550, 900, 4000])),
        UniformLatency(300, 300 + random.choice([200, 300, 4000])),
        LognormalLatency(random.choice([3, 200, 700]), 1200),
    ]
    return random.choice(kinds)


def random_model(random: Random) -> ProducerModel:
    """Brokers of any size and speed, one to four disturbances, any pace."""
    names = random.sample(["broker-a", "broker-b", "broker-c", "d", "Z"], random.randint(1, 4))
    brokers = tuple(
        BrokerModel(name, random.randint(1, 5), random.choice([FAST, FAST, random_latency(random)]))
        for name in names
    )
    seconds = random.choice([20, 45, 120])
    disturbances: list[BrownOut | Outage] = []
    for _ in range(random.randint(0, 3)):
        begin = random.randint(0, seconds - 2) * 1000
        end = min(begin + random.randint(1, seconds) * 1000, seconds * 1000)
        name = random.choice(names)
        if any(d.broker == name and d.from_ms <= end and begin <= d.to_ms for d in disturbances):
            continue
        if random.random() < 0.5:
            errors = random.choice([0.0, 0.01, 0.5])
            disturbances.append(BrownOut(name, begin, end, random_latency(random), errors))
        else:
            kind = random.choice(["connect", "timeout"])
            disturbances.append(Outage(name, begin, end, kind, random.random() < 0.5))
    return model(
        *disturbances,
        brokers=brokers,
        seconds=seconds,
        rate=random.choice([1, 7.3, 40]),
        detector=random.random() < 0.5,
        seed=random.randrange(10**6),
    )
