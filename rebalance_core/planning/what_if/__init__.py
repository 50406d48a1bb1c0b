"""A change of a group: who owns what before and after, what moves, how even the result is.

`what_if` computes it, and makes the group after the change; `change` describes the change,
`planned_group` reads a group as a planner states it, `allocation` is a state of the result,
`what_if_table` prints it.

May import: other modules of `planning`, `replay`, `strategies`, `model`. Begin with `what_if`.
"""
