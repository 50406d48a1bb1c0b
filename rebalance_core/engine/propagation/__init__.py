"""How changes spread through groups, in many futures: what one process and Spark both run.

A piece of work is one group and some seeds (`pieces`); parts of one group add up to its rows of
``propagation``. Begin with `pieces`.
"""
