"""Observed and simulated time of the recordings' changes, and how they compare."""
