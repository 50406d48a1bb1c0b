"""Let brokers and masters leave and return as the timeline states."""

from functools import partial

from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.reference.event_queue import Kind
from rebalance_core.timing.reference.world import ReferenceBroker, World


def brokers_at_first(timeline: GroupTimeline) -> list[ReferenceBroker]:
    """Return every broker in its state before the log begins."""
    first = {
        lifetime.broker: lifetime.up is None for lifetime in reversed(timeline.broker_lifetimes)
    }
    numbers: dict[int, int] = {}
    for number, lifetime in enumerate(timeline.broker_lifetimes):
        numbers.setdefault(lifetime.broker, number)
    return [ReferenceBroker(b, numbers[b], first[b]) for b in range(len(timeline.brokers))]


def schedule_brokers(world: World) -> None:
    """Schedule the events of brokers."""
    timeline, future = world.timeline, world.future
    for number, lifetime in enumerate(timeline.broker_lifetimes):
        broker, (up_us, down_us) = world.brokers[lifetime.broker], future.broker_lifetimes[number]
        if lifetime.up is not None:
            _put(world, up_us, broker, partial(_up, broker, number))
        if lifetime.down is not None:
            _put(world, down_us, broker, partial(_down, broker, silent=lifetime.host_lost))
    for stretch, (since_us, until_us) in zip(timeline.lockless, future.lockless, strict=True):
        broker = world.brokers[stretch.broker]
        _put(world, since_us, broker, partial(_master, broker, present=False))
        if stretch.until is not None:
            _put(world, until_us, broker, partial(_master, broker, present=True))


def _put(world: World, at_us: int, broker: ReferenceBroker, action: partial[None]) -> None:
    world.agenda.put(at_us, Kind.TIMELINE, action, broker=broker.number)


def _up(broker: ReferenceBroker, lifetime: int) -> None:
    """Start a broker, which knows no member of the group."""
    broker.up, broker.silent, broker.lifetime = True, False, lifetime
    broker.forget_group()


def _down(broker: ReferenceBroker, *, silent: bool) -> None:
    """End a broker; a process closes its connections, while a lost host no longer answers."""
    broker.up, broker.silent = False, silent
    broker.forget_group()


def _master(broker: ReferenceBroker, *, present: bool) -> None:
    """Set whether the master, which alone grants order locks and keeps them in memory, is
    present.
    """
    broker.lockless = not present
    broker.locks.clear()
