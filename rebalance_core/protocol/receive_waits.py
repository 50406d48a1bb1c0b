"""A message's wait until a SimpleConsumer's ``receive`` requests it (rocketmq.md §14).

A SimpleConsumer sends one request per call, for the next queue in its route, round robin; the proxy
uses only that queue's broker and pops from all of the broker's queues, or waits there for up to the
await duration. So a message on any other broker waits until the calls come round to it. A
PushConsumer always has a request pending at every broker, so its messages do not wait.

Not every client takes the queues in turn (`Turns`), so the wait depends on the language. Begin with
`group_wait`.

Upstream: ``SubscriptionLoadBalancer.takeMessageQueue`` and ``SimpleConsumerImpl.receive0`` (Java
5.0.0 to 5.2.1), ``subscriptionLoadBalancer.TakeMessageQueue`` and ``defaultSimpleConsumer.Receive``
(Go 5.0.0 to 5.1.4), ``QueueSelector.select_next_queue`` and ``SimpleConsumer.__select_topic_queue``
(Python to 5.1.2), ``SubscriptionLoadBalancer`` (Node 1.0.8), ``ReceiveMessageActivity`` and
``RouteActivity.genMessageQueueFromQueueData`` (proxy 5.0.0 to 5.5.0).
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil, exp, lgamma, log, log1p, prod

from rebalance_core.model.languages import GO, JAVA, NODE_JS, PYTHON

MIN_AWAIT_MS, MAX_AWAIT_MS = 5_000, 20_000
"""ProxyConfig.grpcClientConsumerMinLongPollingTimeoutMillis and …Max…, from 5.1.0 on: the limits
within which a proxy waits, whatever the client asks for.
"""

NEARLY_ALL = 0.99
"""The quantile of waits that is reported along with the longest wait."""


class Turns(Enum):
    """How a client selects topic and queue for its next call."""

    IN_TURN = "topics in turn and the queues of each in turn"
    """The Java and C# clients, and Python's up to 5.1.1."""
    RANDOM_TOPICS = "topics at random and the queues of each in turn"
    """The Go client: it counts calls, but the topics that it counts through come from a map, whose
    order changes with every call. With a single topic, the same as `IN_TURN`.
    """
    RANDOM_QUEUES = "topics in turn and queues at random"
    """Python 5.1.2: a new selector for every call, which begins at a random queue."""


@dataclass(frozen=True, slots=True)
class ReceiveWait:
    """The waits for messages on one broker, while none arrive at the others and all clients select
    alike.

    A receive is assumed to return all waiting messages, because only clients know how many it may
    return.

    Attributes:
        own: the number of the topic's readable queues on the broker.
        others: the number of those on other brokers.
        clients: the number of receiving clients, each with its own index.
        topics: the number of topics that each client subscribes to; calls take them in turn.
        calls: the number of calls that each client has in flight.
        turns: the way in which clients select topic and queue.
    """

    own: int
    others: int
    clients: int = 1
    topics: int = 1
    calls: int = 1
    turns: Turns = Turns.IN_TURN

    @property
    def is_bounded(self) -> bool:
        """Return False if chance decides when the broker is queried, so that the wait has no upper
        bound.

        >>> ReceiveWait(4, 4).is_bounded, ReceiveWait(4, 4, turns=Turns.RANDOM_QUEUES).is_bounded
        (True, False)
        """
        return self.effective_turns is Turns.IN_TURN

    @property
    def effective_turns(self) -> Turns:
        """Return `Turns.IN_TURN` if chance plays no role: with the queues of a single broker, or
        with one topic.

        >>> ReceiveWait(4, 0, topics=3, turns=Turns.RANDOM_QUEUES).effective_turns.name
        'IN_TURN'
        """
        chooses = {
            Turns.IN_TURN: False,
            Turns.RANDOM_TOPICS: self.topics > 1,
            Turns.RANDOM_QUEUES: self.others > 0,
        }
        return self.turns if chooses[self.turns] else Turns.IN_TURN

    @property
    def empty_calls(self) -> int | None:
        """The number of consecutive waiting calls of a client before the broker is queried; None if
        unbounded.

        The ``calls`` in flight query as many consecutive queues at once, so they count as one.

        >>> ReceiveWait(own=4, others=4).empty_calls
        4
        >>> ReceiveWait(own=4, others=4, calls=4).empty_calls
        1
        >>> ReceiveWait(own=4, others=4, calls=5).empty_calls
        0
        >>> ReceiveWait(own=4, others=4, topics=2).empty_calls
        9
        """
        if not self.is_bounded:
            return None
        between = (self.others + 1) * self.topics - 1
        return max(0, ceil((between - self.calls + 1) / self.calls))

    def longest_ms(self, await_ms: int = MAX_AWAIT_MS) -> int | None:
        """Return the longest wait if every call waits ``await_ms`` without a message; None if
        unbounded.

        Traffic at the other brokers ends calls early, which shortens the wait. Time that the
        application spends between two calls adds to it. In a round, the broker is queried once for
        each of its queues; messages that these receives do not take wait just as long for the next
        round.

        Args:
            await_ms: the time that a call waits.

        >>> ReceiveWait(own=4, others=4).longest_ms()
        80000
        """
        return None if self.empty_calls is None else self.empty_calls * await_ms

    def within_ms(self, share: float, await_ms: int = MAX_AWAIT_MS) -> int:
        """Return the time within which this share of the messages is requested.

        Messages arrive at random times, and clients are at random points in their rounds.

        Args:
            share: above 0 and below 1.
            await_ms: the time that a call waits.

        >>> one = ReceiveWait(own=4, others=4)
        >>> one.within_ms(0.5), one.within_ms(0.99)
        (0, 78400)
        >>> ReceiveWait(own=4, others=4, clients=4).within_ms(0.99)
        29403
        >>> ReceiveWait(own=4, others=4, turns=Turns.RANDOM_QUEUES).within_ms(0.99)
        114399
        """
        unasked = (1 - share) ** (1 / self.clients)
        if self.empty_calls is None:
            return int(self._calls_until(unasked) * await_ms)
        longest = self.empty_calls * await_ms
        return max(0, int(longest - self._round_calls(self.empty_calls) * await_ms * unasked))

    def unasked_after(self, waited_ms: int, await_ms: int = MAX_AWAIT_MS) -> float:
        """Return the probability that no client has requested a message that has waited this long.

        This is the inverse of `within_ms`.

        >>> ReceiveWait(own=4, others=4).unasked_after(60_000)
        0.125
        >>> ReceiveWait(own=4, others=4, clients=2).unasked_after(60_000)
        0.015625
        """
        calls = waited_ms / await_ms
        if self.empty_calls is None:
            ended = int(calls)
            before, after = self._unasked_by(ended), self._unasked_by(ended + 1)
            alone = before - (calls - ended) * (before - after)
        else:
            alone = max(0.0, self.empty_calls - calls) / self._round_calls(self.empty_calls)
        return float(alone**self.clients)

    def _round_calls(self, empty_calls: int) -> float:
        """Return how many consecutive waiting calls make up a round."""
        return empty_calls + (1 if self.topics > 1 else self.own) / self.calls

    def _calls_until(self, unasked: float) -> float:
        """Return the number of calls after which a client has still not taken a message with this
        probability.

        The calls in flight when a message arrives end at a random time after it, so the probability
        is linear between whole calls.
        """
        last = 0
        while self._unasked_by(last) > unasked:
            last = 2 * last + 1
        number = bisect_left(range(last), -unasked, key=lambda calls: -self._unasked_by(calls))
        if number == 0:
            return 0.0
        before, after = self._unasked_by(number - 1), self._unasked_by(number)
        return number - 1 + (before - unasked) / (before - after)

    def _unasked_by(self, number: int) -> float:
        """Return the probability that neither the calls in flight nor ``number`` more by each
        caller query the broker.
        """
        calls = (number + 1) * self.calls
        if self.turns is Turns.RANDOM_QUEUES:
            other = self.others / (self.own + self.others)
            turns, rest = divmod(calls, self.topics)
            return float(other**turns * (1 - rest / self.topics * (1 - other)))
        # the queues queried meanwhile are consecutive; so many such runs of other brokers' queues
        # exist
        all_queues = self.own + self.others
        return sum(
            _binomial(calls, turns, 1 / self.topics)
            * (1 if turns == 0 else (self.others + 1 - turns) / all_queues)
            for turns in range(min(calls, self.others) + 1)
        )


def _binomial(trials: int, hits: int, chance: float) -> float:
    """Return the probability of this many hits, using logarithms because there may be thousands of
    trials.
    """
    ways = lgamma(trials + 1) - lgamma(hits + 1) - lgamma(trials - hits + 1)
    return exp(ways + hits * log(chance) + (trials - hits) * log1p(-chance))


TURNS = {GO: Turns.RANDOM_TOPICS, PYTHON: Turns.RANDOM_QUEUES}
"""By language, unless it is `Turns.IN_TURN`. No file shows the release of a client behind a proxy,
so Python's is assumed to be the one whose messages wait longest.
"""


@dataclass(frozen=True, slots=True)
class GroupWait:
    """The waits for messages on one broker, while all clients of a group receive concurrently.

    Attributes:
        alike: one for each set of clients that select alike, at least one. All have the same number
            of topics.
    """

    alike: tuple[ReceiveWait, ...]

    @property
    def clients(self) -> int:
        """Return the number of all clients that receive."""
        return sum(wait.clients for wait in self.alike)

    @property
    def topics(self) -> int:
        """Return how many topics each client subscribes to."""
        return self.alike[0].topics

    @property
    def turns(self) -> tuple[Turns, ...]:
        """Return the distinct ways in which the clients select."""
        return tuple(dict.fromkeys(wait.effective_turns for wait in self.alike))

    @property
    def empty_calls(self) -> int | None:
        """Return the calls after which the first of the clients has queried the broker, or None if
        this depends on chance for all of them.

        >>> group_wait({"a": 4, "b": 4}, "a", {"x": "PYTHON", "y": "JAVA"}).empty_calls
        4
        """
        bounds = (wait.empty_calls for wait in self.alike)
        return min((calls for calls in bounds if calls is not None), default=None)

    def longest_ms(self, await_ms: int = MAX_AWAIT_MS) -> int | None:
        """Return the longest wait, as `ReceiveWait.longest_ms` does; None if unbounded."""
        return None if self.empty_calls is None else self.empty_calls * await_ms

    def within_ms(self, share: float, await_ms: int = MAX_AWAIT_MS) -> int:
        """Return the time within which any client requests this share of the messages.

        A message is not taken if no client takes it, each being at its own point in its own round.

        >>> queues = {"a": 4, "b": 4}
        >>> group_wait(queues, "a", {"x": "JAVA"}).within_ms(0.99)
        78400
        >>> group_wait(queues, "a", {"x": "JAVA", "y": "PYTHON"}).within_ms(0.99)
        57373
        """
        most = min(wait.within_ms(share, await_ms) for wait in self.alike)

        def asked(waited_ms: int) -> float:
            return -prod(wait.unasked_after(waited_ms, await_ms) for wait in self.alike)

        return bisect_left(range(most), share - 1, key=asked)


def group_wait(
    queues: Mapping[str, int],
    broker_name: str,
    languages: Mapping[str, str | None],
    topics: int = 1,
) -> GroupWait:
    """Return the waits for messages on one broker if each client makes one call at a time.

    Args:
        queues: the number of the topic's readable queues by broker.
        broker_name: one of them.
        languages: the language of each receiving client, at least one; None counts as Java.
        topics: the number of topics that each client subscribes to.

    >>> group_wait({"a": 4, "b": 2}, "a", {"x": "NODE_JS"}).longest_ms()
    20000
    >>> mixed = {"w": None, "x": "GO", "y": "RUST", "z": "PYTHON"}
    >>> [wait.clients for wait in group_wait({"a": 4, "b": 2}, "a", mixed).alike]
    [3, 1]
    """
    own = queues[broker_name]
    others = sum(queues.values()) - own
    alike: dict[ReceiveWait, int] = {}
    for language in languages.values():
        # Node 1.0.8 keeps the queues whose own id is 0, rather than whose broker's id is 0
        only_0 = language == NODE_JS and others > 0
        asked = (1, len(queues) - 1) if only_0 else (own, others)
        turns = TURNS.get(language or JAVA, Turns.IN_TURN)
        wait = ReceiveWait(*asked, topics=topics, turns=turns)
        wait = replace(wait, turns=wait.effective_turns)
        alike[wait] = alike.get(wait, 0) + 1
    waits = (replace(wait, clients=number) for wait, number in alike.items())
    return GroupWait(tuple(sorted(waits, key=lambda wait: (wait.turns.name, -wait.others))))
