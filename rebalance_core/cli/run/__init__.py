"""The frame of every job: find inputs, reserve and lock the output, open a session.

May import every package except the modules of the jobs. Begin with `backend` and `in_process`.
"""
