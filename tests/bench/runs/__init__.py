"""Whole jobs, each run as a process: what they take, and that what they write is right."""
