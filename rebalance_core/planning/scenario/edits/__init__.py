"""What a scenario can change: one kind of edit a file.

May import: other modules of `planning.scenario`, `model`, `strategies`. Begin with `edit`, then
`add_consumers`.
"""

from rebalance_core.planning.scenario.edits.brokers import LoseBroker, LoseMaster, LoseRoom
from rebalance_core.planning.scenario.edits.edit import Edit
from rebalance_core.planning.scenario.edits.members import (
    AddConsumers,
    MixedSubscriptions,
    RemoveConsumers,
    RollingRestart,
)
from rebalance_core.planning.scenario.edits.topics import (
    NewTopic,
    ScaleQueues,
    SwitchRequestMode,
    SwitchStrategy,
)

EDIT_KINDS: dict[str, type[Edit]] = {
    edit.KIND: edit
    for edit in (
        AddConsumers,
        RemoveConsumers,
        RollingRestart,
        LoseBroker,
        LoseMaster,
        ScaleQueues,
        NewTopic,
        SwitchStrategy,
        SwitchRequestMode,
        LoseRoom,
        MixedSubscriptions,
    )
}

__all__ = ["EDIT_KINDS", "Edit"]
