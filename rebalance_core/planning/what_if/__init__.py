"""One change of one group: who owns what before and after, what moves, how even the result is.

`what_if` is the call, and makes the group after the change; `change` says what changes,
`planned_group` reads a group as a planner states it, `allocation` is one state of the result,
`what_if_table` prints it.

May import: other modules of `planning`, `replay`, `strategies`, `model`. Begin with `what_if`.
"""
