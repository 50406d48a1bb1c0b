"""A change to a group: who owns what before and after, what moves, and how even the result is.

`what_if` computes it and the group after the change; `change` describes the change, `planned_group`
reads a group as a planner states it, `allocation` is a state in the result, and `what_if_table`
prints it.

May import: other modules of `planning`, `replay`, `strategies`, `model`. Begin with `what_if`.
"""
