"""Durations of short operations, as quantile functions in whole microseconds.

`model.times` has the periods of RocketMQ's timers. docs/fidelity.md states the origin of each
delay. The constants are quantiles of the half of the recorded changes that
tests/recordings/timings/changes.py selects, widened at both ends;
tests/recordings/timings/calibration.py prints the samples. A delay applies to all versions unless
its docstring names some.
"""

from typing import Final

from rebalance_core.contracts.observed import REGISTRATION
from rebalance_core.timing.delay import Delay, delay_ms
from rebalance_core.timing.options import SECOND_US, ClockOptions

START_UP: Final = delay_ms(
    (0, 15),
    (0.05, 50),
    (0.25, 185),
    (0.5, 365),
    (0.75, 675),
    (0.9, 1_120),
    (0.94, 1_400),
    (0.96, 2_000),
    (0.97, 3_100),
    (1, 4_500),
)
"""The time from a client's creation to its logged join (the return of ``start()``)."""
STARTED_TOGETHER_US: Final = 5 * SECOND_US
"""Processes whose joins are at most this far apart were started together, by a deployment or a
host's boot.
"""
START_UP_ALIKE: Final = 0.5
"""The share of futures in which processes started together take equally long, because they wait for
the same CPUs.
"""
TIMERS_AFTER: Final = delay_ms(
    (0, 2), (0.05, 4), (0.25, 18), (0.5, 28), (0.75, 66), (0.9, 111), (0.95, 150), (1, 450)
)
"""The time from a client's creation until its timers start; one draw per process."""
LAST_LEAD: Final = delay_ms(
    (0, -550),
    (0.02, -450),
    (0.06, -300),
    (0.09, 0),
    (0.25, 4),
    (0.5, 10),
    (0.75, 18),
    (0.9, 30),
    (0.95, 40),
    (0.99, 80),
    (1, 900),
)
"""The time from a client's registration with the last broker to its logged join.

It is negative where a slow ``start()`` left the heartbeat to the scheduler, which held the lock.
"""
REGISTRATION_STEP: Final = delay_ms(
    (0, 4),
    (0.05, 10),
    (0.25, 21),
    (0.5, 34),
    (0.75, 53),
    (0.9, 76),
    (0.95, 97),
    (0.99, 165),
    (1, 300),
)
"""The time between a joining client's registrations with two brokers; each opens a connection."""
RECORDED_BROKERS: Final = 4
"""The largest number of brokers in a recording; beyond it, `REGISTRATION_NEXT` applies to each
broker.
"""
REGISTRATION_NEXT: Final = Delay(
    REGISTRATION_STEP.shares, tuple(us * 3 // 5 for us in REGISTRATION_STEP.values)
)
"""The time per registration from the fifth broker on: `REGISTRATION_STEP` scaled to a mean of 24
ms.

On idle hosts (5.3.3), ``start()`` takes 0.33 s with 8 brokers and 0.55 s with 16 on loopback, and
4.9 s with 177 brokers at a round trip of 2 ms, which accounts for 4 ms per broker.
"""
LONGEST_LEAD_MS: Final = 1_000
"""The longest time from a registration to its join, with `RECORDED_BROKERS` brokers on loopback."""
_LONGEST_NEXT_US: Final = 40_000
"""The longest average step for many more brokers: 1.6 times the mean."""


def longest_lead_us(brokers: int, options: ClockOptions) -> int:
    """Return the longest time from a registration to its join.

    Args:
        brokers: the number of brokers that the client registers with.
        options: supply the round trip and the fit; one fitted step takes the maximum, and the
            others take 1.6 times the mean.
    """
    fitted = options.fitted(REGISTRATION)
    if fitted is not None:
        steps_us = fitted.longest + brokers * (fitted.mean * 8 // 5)
        return LONGEST_LEAD_MS * 1_000 + steps_us
    further = max(0, brokers - RECORDED_BROKERS)
    return LONGEST_LEAD_MS * 1_000 + further * _LONGEST_NEXT_US + 2 * brokers * options.rtt_us


LEAVE_BEGIN: Final = delay_ms((0, 0), (0.6, 1), (0.9, 3), (0.98, 120), (1, 300))
"""The time from a logged leave to the shutdown of the consumer.

A process shuts down its consumers in several groups in turn, so the last may shut down seconds
after a leave that is logged for all of them at once (3.2 s in a recording). The delay ignores this,
because no window of the ledger is that long.
"""
LEAVES_TOGETHER_US: Final = 1 * SECOND_US
"""Graceful leaves from a group that are at most this far apart overlap and slow each other down."""
UNLOCK_TOGETHER: Final = delay_ms((0, 2), (0.25, 8), (0.5, 17), (0.75, 26), (1, 38))
"""The time from the start of an overlapping ``shutdown()`` to its ``unlockAll``, per other leaving
member.

A member that leaves alone unlocks at once. 18 members that left with five others took 21 to 183 ms
(docs/fidelity.md).
"""
LEAVE_BEGIN_TOGETHER: Final = delay_ms(
    (0, 0.5), (0.25, 3), (0.5, 6), (0.75, 10), (0.9, 13), (0.97, 20), (1, 220)
)
"""The time from ``unlockAll`` to the unregistration, per other leaving member; passes continue
meanwhile.

`LEAVE_BEGIN` applies to a member that leaves alone. Members that left with five others locked
queues 24 to 95 ms after their ``unlockAll``, and 1 s after it in a run on an overloaded host.
"""
NOTICE_TOGETHER: Final = delay_ms((0, 0), (0.25, 20), (0.5, 40), (0.75, 65), (0.9, 100), (1, 300))
"""The delay beyond `NOTICE` before a notice wakes a member whose ``shutdown()`` overlaps others."""
STOP_AFTER: Final = delay_ms((0, 0), (0.5, 10), (0.9, 50), (1, 60))
"""The time from a leave to the start of ``shutdown()``, if other leaves are logged at the same
time.

In recorded restarts the calls for a host's members follow each other within 15 to 60 ms.
"""
UNREGISTRATION_STEP: Final = delay_ms(
    (0, 0), (0.3, 0.3), (0.4, 3), (0.6, 5), (0.9, 8), (0.99, 25), (1, 60)
)
"""The time from the shutdown to the unregistration at the first broker.

It is close to 0 if the log dates the leave by a broker's notice.
"""
UNREGISTRATION_NEXT: Final = delay_ms((0, 1), (0.25, 2.5), (0.5, 6), (0.9, 8), (0.99, 25), (1, 60))
"""The additional time for each further broker, for a request and its answer."""
CHANNEL_CLOSE: Final = delay_ms(
    (0, 0), (0.06, 4), (0.08, 10), (0.3, 13), (0.5, 15), (0.7, 22), (0.9, 42), (0.97, 60), (1, 300)
)
"""The time from a process's death until brokers see its connections close; one draw per process.

It is close to 0 if the log dates the death by the resulting notices.
"""
CLOSE_STEP: Final = delay_ms((0, 0), (0.7, 1), (0.95, 3), (1, 30))
"""The additional time after `CHANNEL_CLOSE` for a single broker."""
NOTICE: Final = delay_ms(
    (0, 0.5), (0.5, 1.8), (0.75, 2.8), (0.9, 4), (0.95, 6), (0.99, 12), (1, 60)
)
"""The time from a change of a broker's member list until the notice wakes a member."""
TOPIC_VISIBLE: Final = delay_ms(
    (0, -3_600),
    (0.004, -3_000),
    (0.008, 0),
    (0.02, 6),
    (0.25, 12),
    (0.5, 20),
    (0.75, 35),
    (0.95, 200),
    (1, 300),
)
"""The time from a topic's logged change until a name server returns the new route.

The log may record the end of the command that made the change, which can be seconds later.
"""
BROKER_GONE: Final = delay_ms((0, 10), (0.5, 30), (0.9, 45), (1, 300))
"""The time from a broker's end until name servers no longer return it."""
BROKER_GONE_4: Final = delay_ms((0, 10), (0.5, 60), (0.55, 1_000), (1, 5_000))
"""The same for versions before 5.0, in which a stopped broker unregisters only after its store has
shut down.
"""
SHORTEST_SILENCE_US: Final = 90 * SECOND_US
"""The shortest time from a host's loss until name servers notice it: a registration up to 30 s old
expires after 120 s.
"""
SILENCE_SPREAD_US: Final = 35 * SECOND_US
"""Up to 30 s for the age of that registration, plus up to 5 s until the name server's scan."""
BROKER_BACK: Final = delay_ms((0, 0), (0.3, 30), (0.375, 100), (0.376, 10_030), (1, 10_080))
"""The time from a broker's start until name servers return it, since 5.0.

A broker often skips its first registration because it does not yet know that its name servers
answer (5 of 8 recorded restarts); its timer sends the next.
"""
BROKER_BACK_4: Final = delay_ms((0, 0), (0.9, 30), (1, 100))
"""The same for versions before 5.0."""
ROUTE_ANSWER: Final = delay_ms(
    (0, 2), (0.25, 5), (0.5, 6), (0.75, 8), (0.9, 12), (0.95, 15), (0.99, 240), (1, 500)
)
"""The time from a route poll's tick until the client uses the answer."""
PASS_LENGTH: Final = delay_ms(
    (0, 2),
    (0.05, 2),
    (0.25, 3.5),
    (0.5, 5),
    (0.75, 9),
    (0.9, 16),
    (0.95, 28),
    (0.99, 60),
    (1, 400),
)
"""The duration of a rebalance pass that changes nothing; one draw per process.

Some passes take only 0.5 ms, but the engines ask brokers up to 2 ms after a pass begins.
"""
PASS_TAIL: Final = delay_ms(
    (0, 0.5),
    (0.05, 1),
    (0.25, 4),
    (0.5, 8),
    (0.75, 15),
    (0.9, 33),
    (0.95, 50),
    (0.99, 100),
    (1, 300),
)
"""The time from the last queue that a pass releases or takes to the end of the pass."""
DROP_AFTER: Final = delay_ms(
    (0, 1),
    (0.05, 2),
    (0.25, 4),
    (0.5, 9),
    (0.75, 15),
    (0.9, 28),
    (0.95, 42),
    (0.99, 100),
    (1, 400),
)
"""The time from the start of a pass until it has released queues."""
COLD_DROP_AFTER: Final = delay_ms(
    (0, 1),
    (0.05, 2),
    (0.25, 4),
    (0.5, 9),
    (0.75, 15),
    (0.9, 28),
    (0.95, 42),
    (0.985, 100),
    (0.993, 500),
    (1, 1_900),
)
"""The same for a process's first passes, since many processes may start on the same host at once.

It also applies to all passes of an instance that several groups share. On equally loaded hosts
these passes took three times as long as others to reach the topic (83 against 26 ms, medians of 7
and 55 passes), and longer still if the retry topic had changed first (731 ms; docs/fidelity.md).
"""
ADD_AFTER: Final = delay_ms(
    (0, 0.3), (0.05, 1), (0.25, 2), (0.5, 5), (0.75, 8), (0.9, 14), (0.95, 22), (0.99, 60), (1, 200)
)
"""The time from the releases until the pass has taken its new queues."""
COLD_ADD_AFTER: Final = delay_ms(
    (0, 1),
    (0.05, 4),
    (0.25, 40),
    (0.5, 85),
    (0.75, 210),
    (0.9, 390),
    (0.95, 450),
    (0.99, 1_100),
    (1, 2_000),
)
"""The same in the first passes of a process, which load classes and open connections."""
RECORDED_QUEUES: Final = 20
"""The largest number of queues that a recorded pass takes; `QUEUE_NEXT` applies to each further
queue.
"""
QUEUE_NEXT: Final = delay_ms((0, 1), (0.25, 1), (0.5, 3), (0.75, 6), (0.95, 11), (1, 26))
"""The time from a queue that a pass takes to the next, on quiet hosts (5.3.3, 78 queues)."""
OUT_OF_STEP: Final = 0.10
"""Share of members whose passes an unlogged stop has shifted since the group's last change.

Such a stop is a suspended process or a long garbage collection. The recordings caused them
deliberately: 19 of 197 members.
"""
LISTENER: Final = delay_ms((0, 0), (0.5, 150), (1, 500))
"""How long a pass of 5.2 or later waits for an orderly listener (``tryLock`` of 500 ms)."""
