"""The topics that each run of a member reads, with one row per topic; for groups in which that is
sparse.
"""

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.pop_modes import behind_proxies
from rebalance_core.kernels.processes import Membership
from rebalance_core.kernels.runs import Runs
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_periods import GroupTopics
from rebalance_core.model.client_profile import ClientProfile
from rebalance_core.model.clients import JAVA_PROFILE, member_profile
from rebalance_core.model.group_settings import BROADCASTING


@dataclass(frozen=True, slots=True)
class TopicRuns:
    """Runs, once for each subscribed topic, sorted by topic, process and first epoch."""

    run: Ints
    group_topic: Ints


def clustering(encoded: EncodedGroups, membership: Membership) -> Bools:
    """Return, for each state, whether its members divide the queues (not BROADCASTING)."""
    everyone = np.isin(encoded.names.words, [BROADCASTING])
    return ~everyone[membership.states.message_model]


def retrying(encoded: EncodedGroups, membership: Membership) -> Bools:
    """Return, for each state, whether its members subscribe to their group's retry topic."""
    return clustering(encoded, membership) & ~behind_proxies(encoded, membership)


def profiles_of(encoded: EncodedGroups, membership: Membership) -> list[ClientProfile]:
    """Return, for each state, the profile of its members' clients."""
    states = membership.states
    if (states.language < 0).all():
        return [JAVA_PROFILE] * len(states.language)
    words = np.stack([states.language, states.version, states.rebalance_mode])
    distinct, of = np.unique(words, axis=1, return_inverse=True)
    texts = [*encoded.names.words.to_pylist(), None]  # index -1: none
    profiles = [
        member_profile(texts[language], str(texts[version]), str(texts[mode]))
        for language, version, mode in distinct.T.tolist()
    ]
    return [profiles[number] for number in of.reshape(-1).tolist()]


def find_reading(
    encoded: EncodedGroups, membership: Membership, runs: Runs, topics: GroupTopics, groups: Bools
) -> TopicRuns:
    """Return the topics that the members of the given groups read, including their retry topic.

    Args:
        encoded: the groups.
        membership: states of the members.
        runs: the runs of all groups.
        topics: the topics of all groups.
        groups: for each group, whether it is wanted.
    """
    wanted = np.flatnonzero(groups[runs.group])
    row, topic = encoded.topic_sets.members(membership.states.subscriptions[runs.state[wanted]])
    retries = retrying(encoded, membership)[runs.state[wanted]]
    more = wanted[encoded.groups.has_retry[runs.group[wanted]] & retries]
    run = np.concatenate([wanted[row], more])
    topic = np.concatenate([topic, encoded.groups.retry_topic[runs.group[more]]])
    group_topic = topics.index(runs.group[run], topic)
    has_topic = group_topic >= 0
    run, group_topic = run[has_topic], group_topic[has_topic]
    order = np.lexsort((runs.from_epoch[run], runs.process[run], group_topic))
    return TopicRuns(run[order], group_topic[order])
