"""Groups that the replay takes because of how their members get queues, messages or locks."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from rebalance_core.kernels.codes import eligibility
from rebalance_core.kernels.codes.columns import Columns
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.model.events import CONSUMER_JOIN, MASTER_DOWN, REQUEST_MODE
from rebalance_core.model.group_settings import GroupSettings


def mode_reasons(given: Columns, settings: Columns, group: Ints, reason: Ints) -> Ints:
    """The reason of each group, where none was found before; index into `eligibility.REASONS`.

    Args:
        given: cluster_events.
        settings: consumer_groups with one row a group.
        group: number of the group of each event.
        reason: by group, as found so far.
    """
    found = reason.copy()
    of_members = given.equal("event_type", CONSUMER_JOIN) & _other_mode(given, settings, group)
    of_topics = given.equal("event_type", REQUEST_MODE) & ~given.equal("detail", "PULL")
    for code, events in (
        (eligibility.POP, of_topics),
        (eligibility.MIXED_REBALANCE_MODES, of_members),
        (eligibility.MASTERLESS, given.equal("event_type", MASTER_DOWN)),
    ):
        groups = np.unique(group[events])
        found[groups[found[groups] == eligibility.REGULAR]] = code
    return found


def _other_mode(given: Columns, settings: Columns, group: Ints) -> Bools:
    """Events that state another rebalance mode than their group's."""
    default = GroupSettings().rebalance_mode
    of_group = pc.fill_null(settings.given("rebalance_mode"), default).take(group)
    other = pc.not_equal(given.given("rebalance_mode"), of_group).fill_null(False)
    return other.to_numpy(zero_copy_only=False)
