"""Where each new owner starts to read: the rule, its inputs, and bounds that cover every answer.

May import `replay`'s history and changes, `protocol` and `model`. Begin with `pull_starts`.
"""
