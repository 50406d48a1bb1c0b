"""Random groups over time: the log is sound, and what a change leads to is what the replay says.

The replay gives every member one pass on the current view; the loop plays timers, routes, member
lists and notices. Four minutes after the last event both have to agree, whatever happened between.
"""

from hypothesis import HealthCheck, Phase, assume, given, settings

from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.replay.history import GroupHistory, Replay, replay_history
from rebalance_core.replay.member import ProcessKey
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import RANDOM_PHASES, ClockOptions
from rebalance_core.timing.ownership_log import OwnershipLog
from rebalance_core.timing.reference.play import play, play_seeds_one_by_one
from rebalance_core.timing.timeline_builder import build_timeline
from tests.unit.kernels.random_groups import TRAITS, groups
from tests.unit.replay.histories import strategy_for

RANDOM = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
Held = dict[ProcessKey, set[MessageQueue]]


@RANDOM
@given(group=groups())
def test_what_everybody_holds_in_the_end_is_what_the_replay_has(group: GroupHistory) -> None:
    timeline = build_timeline(group, ClockOptions())
    replay = replay_history(group, strategy_for, include_retry_topics=False)
    # Who reads other topics may know other brokers, and is a member there alone.
    alike = {
        member.subscriptions for lifetime in timeline.lifetimes for _, member in lifetime.states
    }
    # What was only observed later has no time at which it spreads.
    late = any(epoch.initial for epoch in replay.epochs[1:])
    assume(timeline.changes and len(alike) == 1 and not late)
    frozen = {topic for epoch in replay.epochs for topic in epoch.frozen_topics}
    expected = in_the_end(replay)
    for seed in range(2):
        found = ends(timeline, play(timeline, seed, ClockOptions()))
        assert holding(found, frozen) == holding(expected, frozen)


@RANDOM
@given(group=groups(traits=TRAITS))
def test_a_queue_is_taken_before_it_is_given_up(group: GroupHistory) -> None:
    options = ClockOptions(phases=RANDOM_PHASES, lost_notices=0.3, late_share=0.5, late_ms=9_000)
    timeline = build_timeline(group, options)
    log = play_seeds_one_by_one(timeline, [7, 8], options)
    for place in range(2):
        ends(timeline, log.take((log.seed == place).nonzero()[0]))


def ends(timeline: GroupTimeline, log: OwnershipLog) -> Held:
    """What every process that stays holds after the last row; asserts that the log makes sense."""
    held = [set(queues) for queues in timeline.initial]
    order = zip(log.lifetime.tolist(), log.queue.tolist(), log.delta.tolist(), strict=True)
    for lifetime, queue, delta in order:
        assert (queue in held[lifetime]) == (delta < 0)
        (held[lifetime].add if delta > 0 else held[lifetime].remove)(queue)
    for lifetime in timeline.lifetimes:
        assert lifetime.ending is None or not held[lifetime.index]
    return {
        (lifetime.client_id, lifetime.channel_id): {
            timeline.queues[queue] for queue in held[lifetime.index]
        }
        for lifetime in timeline.lifetimes
        if lifetime.ending is None
    }


def in_the_end(replay: Replay) -> Held:
    """The holdings of the last epoch."""
    return {key: set(queues) for key, queues in replay.epochs[-1].holdings.items()}


def holding(held: Held, frozen: set[str]) -> Held:
    """The processes that hold queues: the replay has no row of one that never could hold any."""
    kept = ((key, without(queues, frozen)) for key, queues in held.items())
    return {key: queues for key, queues in kept if queues}


def without(queues: set[MessageQueue], frozen: set[str]) -> set[MessageQueue]:
    """Without topics that had no queue: the ledger freezes them, clients may keep an old route."""
    return {q for q in queues if q.topic not in frozen and not is_retry_topic(q.topic)}
