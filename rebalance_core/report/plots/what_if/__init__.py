"""The picture of changes: a column for each state, a row for each consumer.

May import: the other modules of `report.plots`, `model`; matplotlib and pandas.
Begin with `picture.draw_what_if`.
"""
