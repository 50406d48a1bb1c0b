"""Pictures of plans, drawn by matplotlib (extra ``plots``); `rebalance_core.report` exports them.

``moves``, ``load``, ``ownership``, ``what_if`` and ``league`` draw one picture each out of rows
with the contract's columns. They share ``look`` (page, colours, hatches), ``table`` (what rows may
be) and ``names`` (text from outside). All are read in grey print: shade, hatch, letter, shape.
"""
