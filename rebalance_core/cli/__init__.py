"""The command line: `rebalance JOB`; every job parses, calls a service and renders what it gives.

May import every package; pyspark only in `run/session.py`. Nothing need be installed to parse the
options. Begin with `main`, then `jobs` and one of the jobs' packages, such as `simulate`.
"""
