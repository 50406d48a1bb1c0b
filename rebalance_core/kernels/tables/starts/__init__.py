"""Where each new owner starts to read: the rows of ``pull_starts``, with bounds.

May import the other folders of `kernels`. Begin with `pull_starts`.
"""
