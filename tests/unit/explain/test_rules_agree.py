"""The formulas and the outcomes of `explain` against the strategies and the replay's `settle`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebalance_core.explain.settlement import (
    KEEPING,
    NOT_SUBSCRIBED,
    PASSING,
    SUSPENDED,
    Settlement,
)
from rebalance_core.explain.view import View
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.group_settings import BROADCASTING, CLUSTERING, GroupSettings
from rebalance_core.model.queue import MessageQueue, java_string_key, sort_client_ids, sort_queues
from rebalance_core.replay.group_view import GroupView
from rebalance_core.replay.member import Member
from rebalance_core.replay.settle import Holdings, settle
from rebalance_core.replay.topic_shares import strategy_key
from rebalance_core.strategies import allocate_group, parse_strategy
from rebalance_core.strategies.formula import Question
from tests.unit.kernels.random_steps import STRATEGIES as SHARED
from tests.unit.replay.histories import GROUP, RETRY, strategy_for

CLIENTS = ("x", "x0", "y", "10.0.0.1@1#1", "10.0.0.10@1#1", "\uff5e", "😀")
BROKERS = ("a", "r1@b", "r2@c", "\uff5e", "😀")
TOPICS = ("T", "U")
LISTS = ("CONFIG(queues=T/a/0|U/a/1|T/gone/3)", "CONFIG(queues=)")
ROOMLESS = ("MACHINE_ROOM_NEARBY-AVG", "MACHINE_ROOM_NEARBY-CONSISTENT_HASH")
STRATEGIES = (*SHARED, "MACHINE_ROOM(consumer_idcs=)", *ROOMLESS)
VERSIONS = ("4.9", "5.3")
RANDOM = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))


def queues_of(topic: str, counts: Sequence[int]) -> list[MessageQueue]:
    numbered = zip(BROKERS, counts, strict=False)
    return sort_queues(MessageQueue(topic, broker, i) for broker, n in numbered for i in range(n))


COUNTS = st.lists(st.integers(0, 7), max_size=len(BROKERS))
IDS = st.lists(st.sampled_from(CLIENTS), min_size=1, max_size=9)  # repeats: processes of one id


@RANDOM
@given(st.sampled_from(STRATEGIES), st.sampled_from(VERSIONS), COUNTS.filter(any), IDS)
def test_a_formula_names_the_owner_that_the_strategy_gives(
    text: str, version: str, counts: list[int], ids: list[str]
) -> None:
    strategy, queues = parse_strategy(text, version=version), queues_of("T", counts)
    client_ids = sort_client_ids(ids)
    try:
        owners = allocate_group(strategy, queues, client_ids)
    except AllocationError:
        return
    for queue in queues:
        formula = strategy.formula(Question(queue, queues, client_ids))
        assert ((formula.owner,) if formula.owner else ()) == owners[queue], (queue, formula)
        if formula.owner is None:
            continue
        assert formula.entry == client_ids.index(formula.owner), (queue, formula)
        asked = strategy.formula(Question(queue, queues, client_ids, formula.owner))
        assert (asked.owner, asked.lines) == (formula.owner, formula.lines), (queue, asked)


@pytest.mark.parametrize("text", LISTS)
def test_a_list_gives_its_queues_to_whoever_has_it(text: str) -> None:
    strategy, queues = parse_strategy(text), queues_of("T", (2,))
    owners = allocate_group(strategy, queues, ["x", "y"])
    for queue in owners:
        formulas = [strategy.formula(Question(queue, queues, ["x", "y"], c)) for c in "xy"]
        assert tuple(f.owner for f in formulas if f.owner) == owners[queue]


@st.composite
def views(draw: Any) -> GroupView:
    """Members of all kinds, in one of two topics or both; the retry topic may be there or not."""
    own = (draw(st.sampled_from(("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"))),) * 9
    mode = draw(st.sampled_from(("CLIENT", "CLIENT", "BROKER")))
    members = {}
    for client_id in draw(st.lists(st.sampled_from(CLIENTS[:4]), max_size=6)):
        channel = draw(st.sampled_from((None, "2")))
        model = draw(st.sampled_from((CLUSTERING,) * 3 + (BROADCASTING,)))
        members[client_id, channel] = Member(
            client_id,
            channel,
            draw(st.frozensets(st.sampled_from(TOPICS))),
            draw(st.sampled_from((*own, *STRATEGIES, *LISTS * 5))),
            draw(st.sampled_from(VERSIONS)),
            model,
            "",
            mode,
            suspended=draw(st.sampled_from((False,) * 5 + (True,))),
            retry_topic=RETRY if model == CLUSTERING else None,
        )
    counts: Any = st.one_of(st.just([]), COUNTS)
    readable = {topic: queues_of(topic, draw(counts)) for topic in TOPICS}
    if draw(st.booleans()):
        readable[RETRY] = queues_of(RETRY, (1, 1))
    return GroupView(
        GroupSettings(rebalance_mode=mode),
        members,
        dict(sorted(readable.items(), key=lambda entry: java_string_key(entry[0]))),
    )


@st.composite
def steps(draw: Any) -> tuple[GroupView, GroupView]:
    """A view and the next one, under half of the steps with the same members."""
    first, now = draw(views()), draw(views())
    if draw(st.booleans()):
        now = replace(now, settings=first.settings, members=first.members)
    return first, now


def settled(view: GroupView, before: Holdings) -> Holdings:
    strategies = {key: strategy_for(key) for key in map(strategy_key, view.members.values())}
    return settle(view, before, strategies).holdings


def ledger_view(view: GroupView) -> View:
    """The members as the rows of a ledger show them."""
    members: Any = (
        {
            "consumer_group": GROUP,
            "client_id": member.client_id,
            "channel_id": member.channel_id,
            "subscriptions": sorted(member.subscriptions),
            "strategy": member.strategy,
            "version": member.version,
            "language": member.language,
            "rebalance_mode": member.rebalance_mode,
            "message_model": member.message_model,
            "suspended": member.suspended,
        }
        for member in view.members.values()
    )
    epoch: Any = {"epoch": 1}
    return View(epoch, tuple(members), {})


@RANDOM
@given(steps())
def test_outcomes_say_who_has_its_share_and_who_what_it_had(
    step: tuple[GroupView, GroupView],
) -> None:
    first, now = step
    before, view = settled(first, {}), ledger_view(now)
    strategies = {key: strategy_for(key) for key in map(strategy_key, now.members.values())}
    after = settle(now, before, strategies)
    for topic, queues in now.readable.items():
        members = {
            key: replace(
                member,
                subscriptions=member.subscriptions & {topic}
                | ({topic} if member.retry_topic == topic else set()),
            )
            for key, member in now.members.items()
        }
        group = replace(now, members=members, readable={topic: queues})
        settlement = Settlement(view, topic, group, after, strategies)
        for row in view.members:
            key = row["client_id"], row["channel_id"]
            outcome, where = settlement.outcome(row), (topic, row)
            held = {queue for queue in after.holdings[key] if queue.topic == topic}
            kept = {queue for queue in before.get(key, ()) if queue.topic == topic}
            share = settle(group, {}, strategies).holdings[key]
            assert held == settlement.entries(row), where
            if outcome in PASSING:
                assert held == share, where
                assert all(settlement.takes(row, queue) for queue in held), where
            else:
                assert outcome in (*KEEPING, NOT_SUBSCRIBED), where
                assert held == (set() if outcome == NOT_SUBSCRIBED else kept), where
            assert (outcome == SUSPENDED) == row["suspended"], where
