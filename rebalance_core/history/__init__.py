"""Combines nightly audits into new, resolved and recurring findings.

`runs` selects the audits that count, `night` reduces each to rows, and `fold` and `flaps` follow
subjects from night to night. Begin with `runs`.
"""
