"""Random fleets of groups of the shapes the kernels take, with offsets and commits."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from rebalance_core.model.events import NOTICE_MODES, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue, retry_topic
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset
from tests.unit.kernels.random_steps import (
    BROKER,
    CLIENTS,
    COME,
    LISTS,
    MASTERS,
    MODES,
    OBSERVED,
    ONE_FOR_ALL,
    SHARE,
    STEPS,
    STEPS_WITH_MODES,
    STEPS_WITH_TRAITS,
    STRATEGIES,
    TOPIC,
    Story,
)
from tests.unit.replay.histories import event, numbered

GROUPS = tuple((cluster, name) for cluster in "cd" for name in ("g", "😀g", "\uff5eg"))
TRAITS = (
    "twins", "sleep", "list", "own strategies", "own models", "many topics", "pop", "own modes",
    "masters", "timers",
)  # fmt: skip
"""What the members of some groups do, and all others do not."""
MANY_TOPICS = tuple(f"M{number:02}" for number in range(70))
"""More than a member's mask has bits, of members that state no topics."""
SETTINGS = st.fixed_dictionaries(
    {
        "consumer_type": st.sampled_from(("PUSH", "PUSH", "PUSH", "LITE_PULL", "PULL")),
        "message_model": st.sampled_from(("CLUSTERING",) * 4 + ("BROADCASTING",)),
        "strategy": st.sampled_from(ONE_FOR_ALL * 2 + STRATEGIES),
        "subscriptions": st.lists(TOPIC, min_size=1, max_size=4, unique=True).map(tuple),
        "consume_from_where": st.sampled_from(MODES[:3] * 2 + MODES),
        "ordered": st.booleans(),
        "client_version": st.sampled_from(("5.3", "4.9")),
        "broker_version": st.sampled_from(("5.3", "5.0", "4.9", "4.9.2")),
        "in_broker": st.sampled_from((False, False, False, True)),
        "pull_threshold_for_queue": st.sampled_from((1000, 5)),
        "pull_threshold_size_for_queue": st.sampled_from((100, 4)),
        "pull_threshold_for_topic": st.sampled_from((-1, 7)),
        "pull_threshold_size_for_topic": st.sampled_from((-1, 3)),
    }
)
OPENING = st.lists(st.tuples(TOPIC, BROKER, st.integers(1, 5), OBSERVED), min_size=1, max_size=6)

# Windows end 3, 23, 33 or 53 s after an event, 61 s later for orderly groups. A commit is under way
# for 1 s, in the store's file 5 s later, and the owner's own after 16 s.
AROUND_MS = st.sampled_from((
    0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 1, -1_000, -999, 1_000, 2_999, 3_000, 3_001, 6_000, 19_000,
    23_000, 33_000, 53_000, 64_000, 500_000,
))  # fmt: skip
MOMENT = st.tuples(st.sampled_from((0, 0, 0, 0, 0, *range(10))), AROUND_MS)
"""Near which event."""
QUEUES_SEEN = 4
"""Queues with higher ids are never observed."""
TIMERS = st.fixed_dictionaries(
    {
        "notified": st.booleans(),
        "wait_interval_ms": st.sampled_from((20_000, 5_000, 60_000)),
        "min_interval_ms": st.sampled_from((1_000, 1_000, 4_000)),
        "poll_name_server_interval_ms": st.sampled_from((30_000, 5_000, 90_000)),
        "heartbeat_broker_interval_ms": st.sampled_from((30_000, 200_000)),
    }
)
NOTICES = st.lists(st.tuples(MOMENT, BROKER, st.sampled_from(NOTICE_MODES)), max_size=4)
WHERE = st.sampled_from((None,) * 8 + tuple(range(8)))
"""Of which topic on which broker; None: of all."""
SEEN = st.lists(
    st.tuples(
        WHERE, MOMENT, st.sampled_from((0, 0, 3, 8)), st.integers(0, 9),
        st.sampled_from((None, True, False)),
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip
COMMITS = st.one_of(st.integers(0, 12), st.integers(0, 12), st.integers(2**62 - 2, 2**62 + 2))
COMMITTED = st.lists(
    st.tuples(WHERE, MOMENT, st.sampled_from((None, *CLIENTS, "stranger")), COMMITS),
    max_size=6,
)


@st.composite
def groups(
    draw: Any, cluster: str = "c", name: str = "g", traits: Sequence[str] = ()
) -> GroupHistory:
    """One group with a few topics, members and whatever happens to them.

    Args:
        draw: hypothesis'.
        cluster: of the group.
        name: of the group.
        traits: of `TRAITS`, those it may have.
    """
    given = draw(SETTINGS)
    if given.pop("in_broker"):
        given["rebalance_mode"] = "BROKER"
    some = st.sets(st.sampled_from(traits), min_size=1) if traits else st.just(set())
    mine = frozenset(draw(some))
    if "list" in mine:
        given["strategy"] = draw(st.sampled_from(LISTS))
    if "many topics" in mine:
        given["subscriptions"] += MANY_TOPICS
    if {"pop", "own modes"} & mine and draw(st.sampled_from((True, True, True, False))):
        given |= {"consumer_type": "PUSH", "message_model": "CLUSTERING", "client_version": "5.3"}
        given["strategy"] = draw(st.sampled_from(ONE_FOR_ALL))
        given["broker_version"] = draw(st.sampled_from(("5.3", "5.1.3", "5.0")))
        if "own strategies" not in mine:
            given["rebalance_mode"] = draw(st.sampled_from(("BROKER", "BROKER", "CLIENT", "PROXY")))
    story = Story(retry_topic(name), GroupSettings(**given), traits=mine)
    for number, many in enumerate(MANY_TOPICS if "many topics" in mine else ()):
        story.tell(
            {"step": "configure", "topic": many, "broker": "a", "queues": number % 3}
            | {"perm": None, "detail": None}
        )
    for topic, broker, queues, detail in draw(OPENING):
        story.tell(
            {"step": "configure", "topic": topic, "broker": broker, "queues": queues}
            | {"perm": None, "detail": detail}
        )
    for share in draw(st.lists(SHARE, min_size=1, max_size=2)) if "pop" in mine else ():
        story.tell({"step": "mode", "topic": "T", "share": share})
    for step in draw(st.lists(COME, min_size=1, max_size=3)):
        story.tell(step)
    with_traits = STEPS_WITH_MODES if "pop" in mine else STEPS_WITH_TRAITS
    for after_ms, step in draw(with_traits if mine else STEPS):
        story.at_ms += after_ms
        story.tell(step)
    for after_ms, step in draw(MASTERS) if "masters" in mine else ():
        story.at_ms += after_ms
        story.tell(step)
    timers, notices = (draw(TIMERS), draw(NOTICES)) if "timers" in mine else ({}, ())
    story.settings = replace(story.settings, **timers)
    story.events += _switches(story, notices)
    moments = sorted({event.event_ms for event in story.events})
    near = draw(st.one_of(st.none(), MOMENT, MOMENT, MOMENT))
    places = _places(story, name)
    return GroupHistory(
        cluster,
        name,
        replace(story.settings, consume_timestamp_ms=near and _moment(moments, near)),
        numbered(story.events),
        tuple(_seen(places, moments, draw(SEEN))),
        tuple(_committed(places, moments, draw(COMMITTED))),
    )


def _switches(story: Story, notices: Sequence[Any]) -> list[Event]:
    """How brokers tell members from some moments on."""
    times = sorted({event.event_ms for event in story.events})
    return [
        event(_moment(times, moment), "NOTICES", broker_name=broker, detail=mode)
        for moment, broker, mode in notices
    ]


def _places(story: Story, name: str) -> list[tuple[str, str]]:
    """(topic, broker) that there are, those of the retry topic among them."""
    found = {
        (e.topic or "", e.broker_name or "") for e in story.events if e.topic and e.broker_name
    }
    return sorted(found | {(retry_topic(name), broker) for _, broker in found})


def _moment(moments: Sequence[int], near: tuple[int, int]) -> int:
    return max(0, moments[near[0] % len(moments)] + near[1])


def _queues(places: Sequence[tuple[str, str]], where: int | None) -> Iterator[MessageQueue]:
    for place in places if where is None else [places[where % len(places)]]:
        yield from (MessageQueue(*place, queue_id) for queue_id in range(QUEUES_SEEN))


def _seen(
    places: Sequence[tuple[str, str]], moments: Sequence[int], rows: Iterable[Any]
) -> list[QueueOffset]:
    """Observations; their offsets may fall, as those of a queue that is made anew."""
    found = {}
    for where, near, low, more, cached in rows:
        at_ms = _moment(moments, near)
        for queue in _queues(places, where):
            high = max(low, more * queue.queue_id)
            found[queue, at_ms] = QueueOffset(queue, at_ms, low, high, cached)
    return list(found.values())


def _committed(
    places: Sequence[tuple[str, str]], moments: Sequence[int], rows: Iterable[Any]
) -> list[CommittedOffset]:
    found = {}
    for where, near, client, offset in rows:
        at_ms = _moment(moments, near)
        for queue in _queues(places, where):
            row = CommittedOffset(queue, client, at_ms, offset + queue.queue_id)
            found[queue, client, at_ms] = row
    return list(found.values())


@st.composite
def fleets(draw: Any, traits: Sequence[str] = ()) -> tuple[GroupHistory, ...]:
    """Groups of two clusters, all with or all without offsets and commits."""
    count = draw(st.sampled_from((1, 1, 2, 2, 3, 6)))
    found = [draw(groups(*name, traits)) for name in GROUPS[:count]]
    given = ((True, True),) * 12 + ((True, False), (False, True), (False, False))
    seen, committed = draw(st.sampled_from(given))
    return tuple(
        replace(
            group,
            queue_offsets=group.queue_offsets if seen else None,
            committed_offsets=group.committed_offsets if committed else None,
        )
        for group in found
    )
