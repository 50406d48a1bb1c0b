"""Nightly audits put together: what came, what is gone, what keeps coming back.

The way of the data: `runs` chooses which audits count, `night` reduces each to rows, `fold`
and `flaps` follow subjects from night to night. Begin with `runs`.
"""
