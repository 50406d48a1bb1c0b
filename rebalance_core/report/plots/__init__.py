"""Pictures of plans, drawn by matplotlib (extra ``plots``); `rebalance_core.report` exports them.

``moves``, ``load``, ``ownership``, ``league`` and ``what_if`` draw one picture each, out of rows
with the contract's columns. They share ``style`` (page, colours, hatches), ``table`` (what rows are
taken) and ``names`` (text from outside). All can be read in grey print: shade, hatch, letter,
shape.

May import: `report.timeline`, `model`; matplotlib, numpy and pandas. Begin with `league`.
"""
