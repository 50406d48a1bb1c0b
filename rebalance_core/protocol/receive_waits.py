"""The wait of a message until a SimpleConsumer's ``receive`` requests it (rocketmq.md §14).

A SimpleConsumer sends one request per call, for the next queue of its route, round robin; the proxy
uses only that queue's broker and pops from all of the broker's queues, or waits there for up to the
await duration. So a message at any other broker waits until the calls come round. A PushConsumer
has a request at every broker at all times, so that its messages do not wait.

Upstream: ``SubscriptionLoadBalancer.takeMessageQueue`` and ``SimpleConsumerImpl.receive0`` (Java
5.0.0 to 5.2.1), ``subscriptionLoadBalancer.TakeMessageQueue`` (Go 5.0.0 to 5.1.4),
``QueueSelector.select_next_queue`` (Python to 5.1.1), ``ReceiveMessageActivity`` and
``RouteActivity.genMessageQueueFromQueueData`` (proxy 5.0.0 to 5.5.0).
"""

from dataclasses import dataclass
from math import ceil

MIN_AWAIT_MS, MAX_AWAIT_MS = 5_000, 20_000
"""ProxyConfig.grpcClientConsumerMinLongPollingTimeoutMillis and …Max…, from 5.1.0 on: a proxy waits
no shorter and no longer, whatever the client asks for."""

NEARLY_ALL = 0.99
"""The share of messages whose wait is stated beside the longest."""


@dataclass(frozen=True, slots=True)
class ReceiveWait:
    """The waits for messages of one broker, while nothing comes at the others.

    Attributes:
        own: readable queues of the topic on the broker.
        others: those on other brokers.
        clients: that receive, each with an index of its own.
        topics: that each client subscribes; calls take them in turns.
        calls: that each client has in flight.
    """

    own: int
    others: int
    clients: int = 1
    topics: int = 1
    calls: int = 1

    @property
    def empty_calls(self) -> int:
        """Calls of one client, of those that wait one after the other, until the broker is asked.

        Of ``calls`` in flight as many queues in a row are asked at once, so that they count as one.

        >>> ReceiveWait(own=4, others=4).empty_calls
        4
        >>> ReceiveWait(own=4, others=4, calls=4).empty_calls
        1
        >>> ReceiveWait(own=4, others=4, calls=5).empty_calls
        0
        >>> ReceiveWait(own=4, others=4, topics=2).empty_calls
        9
        """
        between = (self.others + 1) * self.topics - 1
        return max(0, ceil((between - self.calls + 1) / self.calls))

    def longest_ms(self, await_ms: int = MAX_AWAIT_MS) -> int:
        """Return the longest wait if every call waits ``await_ms`` in vain.

        Traffic at the other brokers ends calls early, so that the wait is shorter. Time that the
        application spends between two calls comes on top.

        >>> ReceiveWait(own=4, others=4).longest_ms()
        80000
        """
        return self.empty_calls * await_ms

    def within_ms(self, share: float, await_ms: int = MAX_AWAIT_MS) -> int:
        """Return within which time this share of the messages is asked for.

        Messages come at any time, and clients are at any place of their rounds.

        Args:
            share: above 0 and below 1.
            await_ms: how long a call waits.

        >>> one = ReceiveWait(own=4, others=4)
        >>> one.within_ms(0.5), one.within_ms(0.99)
        (0, 78400)
        >>> ReceiveWait(own=4, others=4, clients=4).within_ms(0.99)
        29403
        """
        longest = self.longest_ms(await_ms)
        own_calls = 1 if self.topics > 1 else self.own
        round_ms = (self.empty_calls + own_calls / self.calls) * await_ms
        return max(0, int(longest - round_ms * (1 - share) ** (1 / self.clients)))
