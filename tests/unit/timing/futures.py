"""Small groups played over time: events from a start, many seeds, and who holds what when."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from rebalance_core.model.events import Event
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.ownership_log import OwnershipLog
from rebalance_core.timing.reference.play import Played, play_with_passes
from rebalance_core.timing.reference.world import PassBegun
from rebalance_core.timing.timeline_builder import build_timeline
from tests.unit.replay.histories import event, history, short, topic

START_MS = 1_700_000_000_000
EXACT = ClockOptions(exact_times=True)
SECOND = 1_000_000
COLUMNS = ("seed", "lifetime", "queue", "at_us", "delta")


def joins(at_ms: int, client: str, channel: str | None = None, **fields: Any) -> Event:
    """A member joins with a channel of its own name."""
    return event(at_ms, "CONSUMER_JOIN", client, channel_id=channel or f"{client}/1", **fields)


def happens(at_ms: int, what: str, client: str, channel: str | None = None, **more: Any) -> Event:
    """Something happens to a member that `joins`."""
    return event(at_ms, what, client, channel_id=channel or f"{client}/1", **more)


def two_brokers(queues: int = 4, name: str = "T") -> list[Event]:
    """A topic on brokers a and b, from the start."""
    return [topic(0, queues, name, "a"), topic(0, queues, name, "b")]


@dataclass
class Future:
    """One future; times are milliseconds since the start of the history."""

    timeline: GroupTimeline
    played: Played
    held: dict[str, list[tuple[float, float, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        since: dict[tuple[int, int], int] = {
            (lifetime, queue): START_MS * 1_000
            for lifetime, queues in enumerate(self.timeline.initial)
            for queue in queues
        }
        log = self.played.log
        held = defaultdict(list)
        for lifetime, queue, at_us, delta in zip(
            log.lifetime.tolist(),
            log.queue.tolist(),
            log.at_us.tolist(),
            log.delta.tolist(),
            strict=True,
        ):
            if delta > 0:
                assert (lifetime, queue) not in since, "taken twice"
                since[lifetime, queue] = at_us
            else:
                begun = since.pop((lifetime, queue))
                held[queue].append((ms(begun), ms(at_us), lifetime))
        for (lifetime, queue), begun in since.items():
            held[queue].append((ms(begun), float("inf"), lifetime))
        for queue, spans in held.items():
            its = self.timeline.queues[queue]
            name = short({"topic": its.topic, "broker_name": its.broker_name,
                          "queue_id": its.queue_id})  # fmt: skip
            self.held[name] = sorted((a, b, self._name(lifetime)) for a, b, lifetime in spans)

    def _name(self, lifetime: int) -> str:
        return self.timeline.lifetimes[lifetime].client_id

    def owners(self, at_ms: float) -> dict[str, list[str]]:
        """Who holds each queue at a moment."""
        names = {
            short({"topic": q.topic, "broker_name": q.broker_name, "queue_id": q.queue_id})
            for q in self.timeline.queues
        }
        return {
            name: sorted(who for begin, end, who in self.held.get(name, ()) if begin <= at_ms < end)
            for name in sorted(names)
        }

    def orphans(self, at_ms: float) -> int:
        """Queues that nobody holds."""
        return sum(not who for who in self.owners(at_ms).values())

    def shared(self, at_ms: float) -> int:
        """Queues that more than one holds."""
        return sum(len(who) > 1 for who in self.owners(at_ms).values())

    def queues_of(self, client: str, at_ms: float) -> list[str]:
        """What a client holds at a moment."""
        return [queue for queue, who in self.owners(at_ms).items() if client in who]

    def takes(self, client: str, after_ms: float = 0) -> list[tuple[float, str]]:
        """When a client takes which queue, after a moment."""
        return sorted(
            (begin, queue)
            for queue, spans in self.held.items()
            for begin, _, who in spans
            if who == client and begin > after_ms
        )

    def drops(self, client: str, after_ms: float = 0) -> list[tuple[float, str]]:
        """When a client gives up which queue, after a moment."""
        return sorted(
            (end, queue)
            for queue, spans in self.held.items()
            for _, end, who in spans
            if who == client and after_ms < end < float("inf")
        )

    def passes(self, client: str) -> list[PassBegun]:
        """The passes of a client."""
        return [each for each in self.played.passes if self._name(each.lifetime) == client]

    def hand_overs(self, after_ms: float) -> list[float]:
        """Start minus drop of each queue that goes from one client to another after a moment."""
        found = []
        for spans in self.held.values():
            for (_, end, giver), (begin, _, taker) in pairwise(spans):
                if giver != taker and begin > after_ms:
                    found.append(begin - end)
        return found


def rows_of(log: OwnershipLog) -> list[tuple[int, ...]]:
    """(seed, lifetime, queue, at_us, delta) of a log, in its order."""
    return list(zip(*(getattr(log, column).tolist() for column in COLUMNS), strict=True))


def ms(at_us: int) -> float:
    """Milliseconds since the start."""
    return at_us / 1_000 - START_MS


def futures(
    *events: Event, seeds: int = 20, options: ClockOptions = EXACT, **settings: Any
) -> Iterator[Future]:
    """The futures of a history whose times count from the start."""
    timeline = story(*events, options=options, **settings)
    for seed in range(seeds):
        yield Future(timeline, play_with_passes(timeline, seed, options))


def story(*events: Event, options: ClockOptions = EXACT, **settings: Any) -> GroupTimeline:
    """The timeline of a history whose times count from the start."""
    return build_timeline(history(*shifted(events), **settings), options)


def shifted(events: Sequence[Event]) -> list[Event]:
    """The events at their times since the epoch, in order."""
    moved = [
        Event(
            **{name: getattr(each, name) for name in Event.__slots__}
            | {"event_ms": each.event_ms + START_MS}
        )
        for each in events
    ]
    return sorted(moved, key=lambda each: each.event_ms)
