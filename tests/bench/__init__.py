"""Benches: what things cost, that the results are right, and whether targets are met.

`benches` lists them, `python -m tests.bench` runs them, `page` writes docs/performance.md from what
was measured, `check` compares a run with it. Begin with `report`.
"""
