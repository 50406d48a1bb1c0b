"""Figures of plans, drawn with matplotlib (extra ``plots``); `rebalance_core.report` exports them.

`moves`, `load`, `owners_over_time`, `strategy_points`, `plan_table`, `producers` and `what_if` each
draw a figure from rows with the contract's columns. `futures` and `rollouts` draw simulated time.
They share `style` (page, colours, hatches) and `report.visible` (text from outside). Shades,
hatches, letters and shapes keep all figures readable in greyscale print.

May import: `report`, `model`; matplotlib, numpy and pandas. Begin with `load`.
"""
