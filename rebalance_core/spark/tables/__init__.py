"""Tables in and out: read, conformed, checked, counted, written with a digest.

May import what stands below `engine`, and pyspark. Begin with `read`, then `quarantine`; what its
tasks do is in `check_tasks`.
"""
