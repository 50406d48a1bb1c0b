"""What a scenario can change: one kind of edit a file.

May import: other modules of `planning.scenario`, `model`, `strategies`. Begin with `edit`, then
`add_consumers`.
"""

from rebalance_core.planning.scenario.edits.add_consumers import AddConsumers
from rebalance_core.planning.scenario.edits.edit import Edit
from rebalance_core.planning.scenario.edits.lose_broker import LoseBroker
from rebalance_core.planning.scenario.edits.lose_master import LoseMaster
from rebalance_core.planning.scenario.edits.lose_room import LoseRoom
from rebalance_core.planning.scenario.edits.mixed_subscriptions import MixedSubscriptions
from rebalance_core.planning.scenario.edits.new_topic import NewTopic
from rebalance_core.planning.scenario.edits.remove_consumers import RemoveConsumers
from rebalance_core.planning.scenario.edits.rolling_restart import RollingRestart
from rebalance_core.planning.scenario.edits.scale_queues import ScaleQueues
from rebalance_core.planning.scenario.edits.switch_request_mode import SwitchRequestMode
from rebalance_core.planning.scenario.edits.switch_strategy import SwitchStrategy

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
