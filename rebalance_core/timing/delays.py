"""Durations of small operations: quantile functions with whole numbers, in microseconds.

Periods of RocketMQ's timers are in `model.times`, not here. docs/fidelity.md states the origin of
each delay. The constants are quantiles of the half of the recordings' changes that
tests/recordings/timings/changes.py names, widened at both ends;
tests/recordings/timings/calibration.py prints the samples. A set serves all versions unless its
docstring names some.
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
"""From a client's creation to its join, as the log has it (when ``start()`` returned)."""
STARTED_TOGETHER_US: Final = 5 * SECOND_US
"""Processes whose joins are at most this far apart were started together: a deployment, a host's
boot.
"""
START_UP_ALIKE: Final = 0.5
"""Share of the futures in which these take equally long, because they wait for the same
processors.
"""
TIMERS_AFTER: Final = delay_ms(
    (0, 2), (0.05, 4), (0.25, 18), (0.5, 28), (0.75, 66), (0.9, 111), (0.95, 150), (1, 450)
)
"""From a client's creation until its timers start; one draw per process."""
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
"""From the last broker's registration of a client to its join, as the log has it.

After the join where a slow ``start()`` left the heartbeat to the scheduler, which had the lock.
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
"""Between a joining client's registrations with two brokers; each opens a connection."""
RECORDED_BROKERS: Final = 4
"""The most brokers of a recording: with more, `REGISTRATION_NEXT` counts from the fifth on."""
REGISTRATION_NEXT: Final = Delay(
    REGISTRATION_STEP.shares, tuple(us * 3 // 5 for us in REGISTRATION_STEP.values)
)
"""The same from the fifth broker on: the form of `REGISTRATION_STEP`, 24 ms in the mean.

``start()`` was measured to take 0.33 s with 8 brokers and 0.55 s with 16, on loopback, and 4.9 s
with 177, 2 ms away, of which 4 ms a broker are the two round trips (5.3.3, idle hosts).
"""
LONGEST_LEAD_MS: Final = 1_000
"""The longest time from a registration to its join, with `RECORDED_BROKERS` and on loopback."""
_LONGEST_NEXT_US: Final = 40_000
"""For each further broker, of many: 1.6 times their mean."""


def longest_lead_us(brokers: int, options: ClockOptions) -> int:
    """Return the longest time from a registration to its join.

    Args:
        brokers: how many the client registers with.
        options: with the round trip, and the fit: of its steps, one as long as any and the others
            1.6 times their mean.
    """
    fitted = options.fitted(REGISTRATION)
    if fitted is not None:
        steps_us = fitted.longest + brokers * (fitted.mean * 8 // 5)
        return LONGEST_LEAD_MS * 1_000 + steps_us
    further = max(0, brokers - RECORDED_BROKERS)
    return LONGEST_LEAD_MS * 1_000 + further * _LONGEST_NEXT_US + 2 * brokers * options.rtt_us


LEAVE_BEGIN: Final = delay_ms((0, 0), (0.6, 1), (0.9, 3), (0.98, 120), (1, 300))
"""From a leave, as the log has it, to the shutdown of the consumer.

A process that shuts down consumers of several groups does so in turn, and the last may come seconds
after a leave that is logged for all at once (3.2 s were recorded). That is left out: no window of
the ledger is so long.
"""
LEAVES_TOGETHER_US: Final = 1 * SECOND_US
"""Graceful leaves of a group that are at most this far apart overlap: their stops slow each
other down.
"""
UNLOCK_TOGETHER: Final = delay_ms((0, 2), (0.25, 8), (0.5, 17), (0.75, 26), (1, 38))
"""From the start of such a ``shutdown()`` to its ``unlockAll``, per other member that leaves.

At once for a member that leaves alone. 18 members that left with five others took 21 to 183 ms
(docs/fidelity.md).
"""
LEAVE_BEGIN_TOGETHER: Final = delay_ms(
    (0, 0.5), (0.25, 3), (0.5, 6), (0.75, 10), (0.9, 13), (0.97, 20), (1, 220)
)
"""From there to its unregistration, per other member that leaves; its passes continue.

`LEAVE_BEGIN` for a member that leaves alone. Members that left with five others locked queues 24 to
95 ms after their ``unlockAll``, in one run of an overloaded host 1 s.
"""
NOTICE_TOGETHER: Final = delay_ms((0, 0), (0.25, 20), (0.5, 40), (0.75, 65), (0.9, 100), (1, 300))
"""The delay beyond `NOTICE` until a member is woken whose ``shutdown()`` overlaps others'."""
STOP_AFTER: Final = delay_ms((0, 0), (0.5, 10), (0.9, 50), (1, 60))
"""From a leave to the start of ``shutdown()``, where other leaves are logged at the same time.

Recorded restarts call it for a host's members in turn, within 15 to 60 ms.
"""
UNREGISTRATION_STEP: Final = delay_ms(
    (0, 0), (0.3, 0.3), (0.4, 3), (0.6, 5), (0.9, 8), (0.99, 25), (1, 60)
)
"""From the shutdown to the first broker's unregistration.

Almost nothing where the log dates the leave by a broker's notice.
"""
UNREGISTRATION_NEXT: Final = delay_ms((0, 1), (0.25, 2.5), (0.5, 6), (0.9, 8), (0.99, 25), (1, 60))
"""The additional time for each further broker: a request and its answer."""
CHANNEL_CLOSE: Final = delay_ms(
    (0, 0), (0.06, 4), (0.08, 10), (0.3, 13), (0.5, 15), (0.7, 22), (0.9, 42), (0.97, 60), (1, 300)
)
"""From a process's death until brokers see connections close; one draw per process.

Almost nothing where the log dates the death by the resulting notices.
"""
CLOSE_STEP: Final = delay_ms((0, 0), (0.7, 1), (0.95, 3), (1, 30))
"""The additional time of a single broker after `CHANNEL_CLOSE`."""
NOTICE: Final = delay_ms(
    (0, 0.5), (0.5, 1.8), (0.75, 2.8), (0.9, 4), (0.95, 6), (0.99, 12), (1, 60)
)
"""From a broker's change of its list until a member has been woken."""
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
"""From a change of a topic, as the log has it, until a name server answers with it.

The log may have the end of the command that changed it, which can be seconds later.
"""
BROKER_GONE: Final = delay_ms((0, 10), (0.5, 30), (0.9, 45), (1, 300))
"""From a broker's end until name servers answer without it."""
BROKER_GONE_4: Final = delay_ms((0, 10), (0.5, 60), (0.55, 1_000), (1, 5_000))
"""The same before 5.0: a stopped broker unregisters after its store's shutdown."""
SHORTEST_SILENCE_US: Final = 90 * SECOND_US
"""From a host's loss until name servers notice: a registration up to 30 s old expires in 120 s."""
SILENCE_SPREAD_US: Final = 35 * SECOND_US
"""The age of that registration, and up to 5 s until the name server's scan."""
BROKER_BACK: Final = delay_ms((0, 0), (0.3, 30), (0.375, 100), (0.376, 10_030), (1, 10_080))
"""From a broker's start until name servers answer with it, from 5.0 on.

Its first registration often comes before its name servers are known to answer, and is skipped (5 of
8 recorded restarts); its timer sends the next.
"""
BROKER_BACK_4: Final = delay_ms((0, 0), (0.9, 30), (1, 100))
"""The same before 5.0."""
ROUTE_ANSWER: Final = delay_ms(
    (0, 2), (0.25, 5), (0.5, 6), (0.75, 8), (0.9, 12), (0.95, 15), (0.99, 240), (1, 500)
)
"""From a route poll's tick until its answer is in use."""
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
"""A rebalance pass that changes nothing from begin to end; one draw per process.

Some take 0.5 ms; the engines ask brokers up to 2 ms after the begin.
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
"""From the last queue released or taken in a pass to its end."""
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
"""From a pass's begin until it has released queues."""
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
"""The same in the first passes of a process: many may start on the same host at once.

It also applies to all passes of an instance that several groups share: on equally loaded hosts they
took three times as long as others to reach the topic (83 against 26 ms, medians of 7 and 55
passes), and longer still where the retry topic had changed before it (731 ms; docs/fidelity.md).
"""
ADD_AFTER: Final = delay_ms(
    (0, 0.3), (0.05, 1), (0.25, 2), (0.5, 5), (0.75, 8), (0.9, 14), (0.95, 22), (0.99, 60), (1, 200)
)
"""From there until it has taken the others."""
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
"""The same in the first passes of a process: classes are loaded, connections opened."""
RECORDED_QUEUES: Final = 20
"""The most queues that a pass takes in a recording: `QUEUE_NEXT` counts for the others."""
QUEUE_NEXT: Final = delay_ms((0, 1), (0.25, 1), (0.5, 3), (0.75, 6), (0.95, 11), (1, 26))
"""From a queue that a pass takes to the next, on quiet hosts (5.3.3, 78 queues)."""
OUT_OF_STEP: Final = 0.10
"""Share of members whose passes an unlogged stop moved since the group's last change.

A stopped process, a long garbage collection: 19 of 197 in the recordings, which caused them on
purpose.
"""
LISTENER: Final = delay_ms((0, 0), (0.5, 150), (1, 500))
"""How long a pass of 5.2 or later waits for an orderly listener (``tryLock`` of 500 ms)."""
