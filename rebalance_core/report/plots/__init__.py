"""Pictures of plans, drawn by matplotlib (extra ``plots``); `rebalance_core.report` exports them.

`moves`, `load`, `owners_over_time`, `strategy_points`, `plan_table`, `producers` and
`what_if` draw one picture each, from rows with the contract's columns. `futures` and `rollouts`
draw simulated time. They share `style` (page, colours, hatches, which rows are accepted) and
`report.visible` (text from outside).
All can be read in grey print: by shade, hatch, letter, shape.

May import: `report`, `model`; matplotlib, numpy and pandas. Begin with `load`.
"""
