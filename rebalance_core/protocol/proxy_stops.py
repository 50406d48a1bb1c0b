"""The cost of a proxy's stop for its gRPC clients that reach another proxy (rocketmq.md §14).

A killed proxy loses the messages that it has popped but not delivered: no client has them, and the
broker redelivers them once the invisible time is over. Messages that clients hold are acknowledged
through another proxy, with the request repeated every second.

A proxy that shuts down gracefully (SIGTERM) refuses new calls, lets calls in progress finish, and
after 30 s gives the messages that it believes its clients hold an invisible time of 1 s. These
include messages that clients have acknowledged through another proxy in the meantime, so the last
messages are redelivered.

Upstream: ``ProcessQueueImpl.RECEIVING_FAILURE_BACKOFF_DELAY`` and
``ClientSessionImpl.REQUEST_OBSERVER_RENEW_BACKOFF_DELAY`` (rocketmq-clients, Java 5.2.0);
``GrpcServer.shutdown``, ``DefaultReceiptHandleManager.clearAllHandle`` (proxy 5.5.0),
``ReceiptHandleProcessor.clearAllHandle`` (5.0.0).
"""

from dataclasses import dataclass

from rebalance_core.model.times import (
    GRPC_HEARTBEAT_MS,
    POP_INVISIBLE_MS,
    POP_REVIVE_WAIT_MS,
    REVIVE_ROUND_MS,
)

REGISTERED_AGAIN_MS = 1_000
"""How long a client waits after a broken connection before it registers with another proxy."""

FIRST_RECEIVE_MS = GRPC_HEARTBEAT_MS
"""The time until a receive through another proxy returns messages: a stopping proxy keeps the
telemetry stream open, so the other one lists a client only from its next heartbeat on. Recorded on
a busy host: up to 8.6 s after a stop, and 5.3 s after a kill at a proxy that had not served a
receive before.
"""

DRAIN_MS = 30_000
"""``ProxyConfig.grpcShutdownTimeSeconds``: telemetry streams never end, so it always elapses."""

STOPPING_MS = 5_000
"""The time a proxy spends before the 30 s (on its remoting server; 1.5 s recorded) and right after
them.
"""

CLEARED_INVISIBLE_MS = 1_000
"""``ProxyConfig.invisibleTimeMillisWhenClear``."""


@dataclass(frozen=True, slots=True)
class ProxyStop:
    """A proxy's stop.

    Attributes:
        killed: whether it stops without its shutdown hook rather than gracefully.
        away_ms: how long its clients have no proxy; `REGISTERED_AGAIN_MS` if another one is up.
        invisible_ms: the messages' invisible time; for push consumers the proxy's, 60 s.
    """

    killed: bool
    away_ms: int = REGISTERED_AGAIN_MS
    invisible_ms: int = POP_INVISIBLE_MS

    @property
    def held_back_ms(self) -> tuple[int, int] | None:
        """The earliest and latest time after the pop at which a message that a killed proxy had
        popped but not delivered is redelivered; None for a graceful stop, which delivers all
        messages.

        >>> ProxyStop(killed=True).held_back_ms, ProxyStop(killed=False).held_back_ms
        ((62000, 64000), None)
        """
        if not self.killed:
            return None
        revived_ms = self.invisible_ms + POP_REVIVE_WAIT_MS
        return revived_ms, revived_ms + REVIVE_ROUND_MS

    @property
    def longest_wait_ms(self) -> int:
        """The maximum time that a message waits for its first delivery.

        >>> ProxyStop(killed=True).longest_wait_ms, ProxyStop(killed=False).longest_wait_ms
        (64000, 11000)
        """
        asked_ms = self.away_ms + FIRST_RECEIVE_MS
        return asked_ms if self.held_back_ms is None else max(asked_ms, self.held_back_ms[1])

    @property
    def repeated_by_ms(self) -> int:
        """The maximum time after the stop at which a message delivered shortly before it is
        redelivered.

        After a kill, messages are redelivered if their acknowledgement does not arrive while they
        are invisible; after a graceful stop, so are some that were acknowledged.

        >>> ProxyStop(killed=True).repeated_by_ms, ProxyStop(killed=False).repeated_by_ms
        (64000, 40000)
        """
        revive_ms = POP_REVIVE_WAIT_MS + REVIVE_ROUND_MS
        if self.killed:
            return self.invisible_ms + revive_ms
        return DRAIN_MS + STOPPING_MS + CLEARED_INVISIBLE_MS + revive_ms
