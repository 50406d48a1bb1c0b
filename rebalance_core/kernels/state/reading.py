"""Which topics each run of a member reads, one row a topic: for groups in which that is sparse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.codes.coded_groups import CodedGroups
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.state.activity import GroupTopics
from rebalance_core.kernels.state.membership import Membership
from rebalance_core.kernels.state.runs import Runs
from rebalance_core.model.group_settings import BROADCASTING, PROXY_REBALANCE


@dataclass(frozen=True, slots=True)
class Reading:
    """Runs, once for each topic that the member subscribes; by topic, process and first epoch."""

    run: Ints
    group_topic: Ints


def clustering(coded: CodedGroups, membership: Membership) -> Bools:
    """By state: its members divide the queues, they are not BROADCASTING."""
    everyone = np.isin(coded.names.words, [BROADCASTING])
    return ~everyone[membership.states.message_model]


def retrying(coded: CodedGroups, membership: Membership) -> Bools:
    """By state: its members subscribe the retry topic, if their group has one."""
    proxied = np.isin(coded.names.words, [PROXY_REBALANCE])
    return clustering(coded, membership) & ~proxied[membership.states.rebalance_mode]


def find_reading(
    coded: CodedGroups, membership: Membership, runs: Runs, topics: GroupTopics, groups: Bools
) -> Reading:
    """What the members of some groups read, their retry topic included.

    Args:
        coded: the groups.
        membership: states of the members.
        runs: of all groups.
        topics: of all groups.
        groups: by group: whether it is wanted.
    """
    wanted = np.flatnonzero(groups[runs.group])
    row, topic = coded.topic_sets.members(membership.states.subscriptions[runs.state[wanted]])
    retries = retrying(coded, membership)[runs.state[wanted]]
    more = wanted[coded.groups.has_retry[runs.group[wanted]] & retries]
    run = np.concatenate([wanted[row], more])
    topic = np.concatenate([topic, coded.groups.retry_topic[runs.group[more]]])
    group_topic = topics.index(runs.group[run], topic)
    known = group_topic >= 0
    run, group_topic = run[known], group_topic[known]
    order = np.lexsort((runs.from_epoch[run], runs.process[run], group_topic))
    return Reading(run[order], group_topic[order])
