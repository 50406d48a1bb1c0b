"""Pictures of simulated time: how long changes take, and one future queue by queue.

May import: what `report.plots` may. Begin with `convergence`; `future` draws rows of ``handovers``
as ownership.
"""
