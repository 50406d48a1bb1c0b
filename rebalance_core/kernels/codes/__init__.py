"""Input tables as arrays: names coded as integers that sort as Java sorts the names.

May import `segments` and what `kernels` may. Begin with `coded_groups`; `eligibility` says which
groups the kernels take.
"""
