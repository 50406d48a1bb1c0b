"""Order locks of the brokers (rocketmq.md §7).

Upstream: ``RebalanceLockManager`` on the broker, ``lockAll`` and ``unlockAll`` of the client.
"""

from collections.abc import Collection, Iterable, Set
from functools import partial

from rebalance_core.client.broker_answers import BrokerAnswers
from rebalance_core.client.drop_phase import FORCED_UNLOCK
from rebalance_core.client.pass_record import PassRecord
from rebalance_core.model.client_profile import KEPT
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import BROKER_LOCK_LIFE_MS, UNLOCK_DELAY_MS
from rebalance_core.timing.delays import LISTENER
from rebalance_core.timing.draws import DRAW_BITS, Timer
from rebalance_core.timing.reference.event_queue import Kind
from rebalance_core.timing.reference.world import Client, OrderLock, ReferenceBroker, World

_LOCK_LIFE_US = BROKER_LOCK_LIFE_MS * 1_000
_UNLOCK_DELAY_US = UNLOCK_DELAY_MS * 1_000


def broker_answers(
    world: World, *, masterless: Collection[int] = (), no_locks: bool = False
) -> BrokerAnswers:
    """Return the answers that brokers give to a pass at this moment.

    Args:
        world: the moment.
        masterless: brokers whose master's address the pass does not know.
        no_locks: refuse every lock, to see which locks the pass requests.
    """
    names = world.timeline.brokers
    silent = (
        b for b in world.brokers if no_locks or not b.up or b.lockless or b.number in masterless
    )
    locks = {
        world.timeline.queues[queue]: lock.client_id
        for broker in world.brokers
        for queue, lock in broker.locks.items()
        if not _expired(world, lock)
    }
    return BrokerAnswers(
        world.queue_answers, locks, masters_down=frozenset(names[b.number] for b in silent)
    )


def note_backlog(world: World, client: Client) -> None:
    """Set, for each of a client's queues, whether messages wait in the client."""
    if client.process.unlocks_on_removal:
        for queue, state in client.process.table.items():
            number = world.queue_numbers.get(queue)
            state.holds_messages = number is not None and has_backlog(world, number)


def granted(
    world: World, client: Client, record: PassRecord, new: Collection[MessageQueue]
) -> None:
    """Record the locks that a pass got for the queues that it took."""
    for queue, was_granted in record.locks:
        number = world.queue_numbers.get(queue)
        if was_granted and queue in new and number is not None:
            _lock(world, client, number)


def has_backlog(world: World, queue: int) -> bool:
    """Return whether messages from a queue wait in the client, which is unknown and therefore true
    in half of all futures.
    """
    broker = world.timeline.broker_of_queue[queue]
    entity = world.timeline.broker_entities[broker]
    return world.draw(entity, Timer.BACKLOG, queue) < 1 << (DRAW_BITS - 1)


def release_after_pass(
    world: World, client: Client, record: PassRecord, gone: Set[MessageQueue], at_us: int
) -> None:
    """Schedule the unlocking of queues that a pass removed.

    Since 5.2, a busy listener delays it for as long as ``tryLock`` waits; in earlier versions,
    messages in the client delay it for 20 s. Queues of topics that are no longer subscribed are not
    unlocked, and a client that keeps its locks unlocks none.
    """
    if not client.process.unlocks_on_removal or client.member.profile.locks == KEPT:
        return
    for queue in sorted(gone - set(record.truncated)):
        number = world.queue_numbers.get(queue)
        if number is None:
            continue
        if queue in record.delayed_unlocks:
            delay = _UNLOCK_DELAY_US
        elif waits_for_listener(client) and has_backlog(world, number):
            delay = LISTENER.delay_of(world.draw(client.lifetime.entity, Timer.LISTENER, number))
        else:
            delay = 0
        unlock = partial(_release_after_pass, world, client, number, delay)
        world.agenda.put(at_us + delay, Kind.RELEASE, unlock, process=client.index)


def waits_for_listener(client: Client) -> bool:
    """Return whether the removal of a queue waits for the listener rather than for its messages."""
    return client.version >= FORCED_UNLOCK


def unlock_all(world: World, client: Client) -> None:
    """Apply ``unlockAll`` at a graceful end; locks granted later remain."""
    for queue in client.held if client.process.unlocks_on_removal else ():
        _release(world, client, queue)


def renew_all(world: World, client: Client) -> None:
    """Apply ``lockAll``, which locks the client's queues or renews their locks unless another
    client holds them.
    """
    for queue in sorted(client.held):
        broker = _broker(world, queue)
        lock = broker.locks.get(queue)
        free = lock is None or lock.client_id == client.lifetime.client_id or _expired(world, lock)
        if free and broker.up and not broker.lockless:
            _lock(world, client, queue)


def schedule_renewal(world: World, client: Client, from_us: int) -> None:
    """Schedule the client's first round of lockAll at or after a time."""
    if client.process.unlocks_on_removal:
        number = world.future.lock_renewals_before(client.index, from_us)
        at_us = world.future.lock_renewal_us(client.index, number)
        tick = partial(_tick, world, client, world.stretch)
        world.agenda.put(at_us, Kind.RENEWAL, tick, process=client.index)


def _tick(world: World, client: Client, stretch: int) -> None:
    if not world.ticks(client, stretch) or client.leaving:
        return
    renew_all(world, client)
    schedule_renewal(world, client, world.now_us + 1)


def remember_renewals(world: World, clients: Iterable[Client], since_us: int) -> None:
    """Record the effect of lockAll during an idle period, in which only each client's last round
    counts.
    """
    last = []
    for client in clients:
        number = world.future.lock_renewals_before(client.index, world.now_us + 1) - 1
        at_us = world.future.lock_renewal_us(client.index, number)
        renews = client.process.unlocks_on_removal and not client.leaving
        if number >= 0 and at_us > since_us and renews:
            last.append((at_us, client.index, client))
    for at_us, _, client in sorted(last, key=lambda each: each[:2]):
        renew_all(world, client)
        for queue in client.held:
            lock = _broker(world, queue).locks.get(queue)
            if lock is not None and lock.client_id == client.lifetime.client_id:
                lock.renewed_us = at_us


def _broker(world: World, queue: int) -> ReferenceBroker:
    return world.brokers[world.timeline.broker_of_queue[queue]]


def _lock(world: World, client: Client, queue: int) -> None:
    _broker(world, queue).locks[queue] = OrderLock(client.lifetime.client_id, world.now_us)


def _release_after_pass(world: World, client: Client, queue: int, delay_us: int) -> None:
    """Release a queue after a pass; ``shutdown()`` waits for a running pass, but not for a delayed
    unlock.
    """
    if world.is_alive(client) or (client.leaving and delay_us < _UNLOCK_DELAY_US):
        _release(world, client, queue)


def _release(world: World, client: Client, queue: int) -> None:
    """Release a queue by client id alone, even if the client has retaken it meanwhile."""
    broker = _broker(world, queue)
    lock = broker.locks.get(queue)
    if lock is not None and lock.client_id == client.lifetime.client_id and broker.up:
        del broker.locks[queue]


def _expired(world: World, lock: OrderLock) -> bool:
    return world.now_us - lock.renewed_us > _LOCK_LIFE_US
