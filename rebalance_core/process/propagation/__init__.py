"""Simulated time in this process, or in a pool of processes: begin with `propagate`."""
