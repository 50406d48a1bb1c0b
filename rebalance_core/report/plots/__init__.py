"""Pictures of plans, drawn by matplotlib (extra ``plots``); `rebalance_core.report` exports them.

`moves`, `load`, `owners_over_time`, `strategy_points`, `plan_table`, `producers` and `what_if` each
draw a picture from rows with the contract's columns. `futures` and `rollouts` draw simulated time.
They share `style` (page, colours, hatches) and `report.visible` (text from outside). Shades,
hatches, letters and shapes keep all pictures readable in grey print.

May import: `report`, `model`; matplotlib, numpy and pandas. Begin with `load`.
"""
