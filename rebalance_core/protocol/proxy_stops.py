"""What the stop of a proxy costs its gRPC clients that reach another one (rocketmq.md §14).

A proxy that is killed takes with it what it has popped and not handed over: no client has the
message, and the broker delivers it again when the invisible time is over. What clients hold they
acknowledge through another proxy, repeating the request each second.

A proxy that stops in order (SIGTERM) refuses new calls, lets calls in progress finish, and after
30 s gives what it believes its clients hold an invisible time of 1 s. That includes messages that
clients have acknowledged through another proxy meanwhile, so the last messages are redelivered.

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
"""How long a client waits after a broken connection before it registers at another proxy."""

FIRST_RECEIVE_MS = GRPC_HEARTBEAT_MS
"""Until a receive through another proxy brings messages: a stopping proxy keeps the telemetry
stream, so the other one lists a client only from its next heartbeat on. Recorded: up to 8.6 s after
a stop, and 5.3 s after a kill at a proxy that had served no receive before, on a busy host."""

DRAIN_MS = 30_000
"""``ProxyConfig.grpcShutdownTimeSeconds``: telemetry streams never end, so it always passes."""

STOPPING_MS = 5_000
"""What a proxy does before the 30 s (its remoting server; recorded 1.5 s) and right after them."""

CLEARED_INVISIBLE_MS = 1_000
"""``ProxyConfig.invisibleTimeMillisWhenClear``."""


@dataclass(frozen=True, slots=True)
class ProxyStop:
    """A proxy's stop.

    Attributes:
        killed: without its shutdown hook; else in order.
        away_ms: how long its clients have no proxy, `REGISTERED_AGAIN_MS` where another one is up.
        invisible_ms: the messages' invisible time; 60 s, the proxy's, for push consumers.
    """

    killed: bool
    away_ms: int = REGISTERED_AGAIN_MS
    invisible_ms: int = POP_INVISIBLE_MS

    @property
    def held_back_ms(self) -> tuple[int, int] | None:
        """Earliest and latest time, from the pop, at which a message that a killed proxy popped
        and did not hand over comes; None: a proxy that stops in order hands all over.

        >>> ProxyStop(killed=True).held_back_ms, ProxyStop(killed=False).held_back_ms
        ((62000, 64000), None)
        """
        if not self.killed:
            return None
        revived_ms = self.invisible_ms + POP_REVIVE_WAIT_MS
        return revived_ms, revived_ms + REVIVE_ROUND_MS

    @property
    def longest_wait_ms(self) -> int:
        """The longest time that a message waits for its first delivery.

        >>> ProxyStop(killed=True).longest_wait_ms, ProxyStop(killed=False).longest_wait_ms
        (64000, 11000)
        """
        asked_ms = self.away_ms + FIRST_RECEIVE_MS
        return asked_ms if self.held_back_ms is None else max(asked_ms, self.held_back_ms[1])

    @property
    def repeated_by_ms(self) -> int:
        """How long after the stop a message delivered shortly before it may be redelivered.

        After a kill those messages whose acknowledgement does not arrive while they are invisible;
        after a stop in order also some that were acknowledged.

        >>> ProxyStop(killed=True).repeated_by_ms, ProxyStop(killed=False).repeated_by_ms
        (64000, 40000)
        """
        revive_ms = POP_REVIVE_WAIT_MS + REVIVE_ROUND_MS
        if self.killed:
            return self.invisible_ms + revive_ms
        return DRAIN_MS + STOPPING_MS + CLEARED_INVISIBLE_MS + revive_ms
