"""The groups of checked tables, each with its history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.checks.row_checks import Checked
from rebalance_core.engine.fan_out import GroupedRows, fan_out
from rebalance_core.engine.group_history import history_of
from rebalance_core.engine.options import like_pattern
from rebalance_core.engine.propagation.options import PropagationOptions
from rebalance_core.kernels.codes.codes import COMMITS, OFFSETS
from rebalance_core.replay.history import GroupHistory


@dataclass(frozen=True, eq=False)
class Groups:
    """Histories by the number of the group; each is made when it is asked for."""

    rows: GroupedRows

    @classmethod
    def of(cls, checked: Checked, options: PropagationOptions) -> Groups:
        """The groups wanted that have consumer events."""
        pattern = None if options.group is None else like_pattern(options.group)
        return cls(fan_out(checked.tables, pattern))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[GroupHistory]:
        return map(self.history, range(len(self)))

    def history(self, number: int) -> GroupHistory:
        """The history of one group."""
        return history_of(
            self.rows.of(number, number + 1),
            queue_offsets_given=OFFSETS in self.rows.tables,
            committed_offsets_given=COMMITS in self.rows.tables,
        )
