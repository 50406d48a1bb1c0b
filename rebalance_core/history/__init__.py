"""Nightly audits combined: new, gone and recurring findings.

The flow of data: `runs` chooses the audits that count, `night` reduces each to rows, and `fold` and
`flaps` follow subjects from night to night. Begin with `runs`.
"""
