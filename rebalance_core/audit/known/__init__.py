"""Defects of RocketMQ and of its clients that explain what operators see, and which finding fits.

`known_issues.toml` is the list, the same file as docs/known-issues.toml. Begin with
`known_issue.KnownIssue`. May import what `audit` may.
"""
