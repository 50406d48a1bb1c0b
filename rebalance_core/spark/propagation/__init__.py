"""Simulated time on Spark: a task plays groups, or parts of their seeds. Begin with `propagate`."""
