"""What every job does around its work: find inputs, reserve and lock the output, open a session.

May import every package but the modules of the jobs. Begin with `backend` and `in_process`.
"""
