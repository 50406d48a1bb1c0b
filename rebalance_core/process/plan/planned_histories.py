"""The histories of a plan as the replay has them, to look into one group."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.checks.input_tables import InputTables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.ledger_pass import history_of
from rebalance_core.engine.options import like_pattern
from rebalance_core.kernels.codes import COMMITS, OFFSETS
from rebalance_core.planning.sweep.plan_edits import EventFacts, plan_edits
from rebalance_core.planning.variants import Variants
from rebalance_core.process.plan_pass import Histories
from rebalance_core.replay.history import GroupHistory


def planned_histories(
    inputs: InputTables, variants: Variants, group: str
) -> Iterator[tuple[str, int, GroupHistory]]:
    """(scenario, first edit in epoch ms, history) of the groups wanted in each history of a plan.

    Bad rows are left out. Without a scenario the first edit is -1.

    Args:
        inputs: the recorded history.
        variants: what to compute; strategies do not matter.
        group: a name, or a glob.
    """
    tables = check_tables(inputs).tables
    edits = plan_edits(EventFacts.of_tables(tables), variants)
    histories = Histories(tables, edits, like_pattern(group))
    for number, named in enumerate(variants.histories):
        edited = histories.of(number)
        grouped = fan_out(edited.tables, like_pattern(group))
        for place in range(len(grouped)):
            history = history_of(
                grouped.of(place, place + 1),
                queue_offsets_given=OFFSETS in edited.tables,
                committed_offsets_given=COMMITS in edited.tables,
            )
            yield named.name, edited.first_ms.get(history.cluster, -1), history
