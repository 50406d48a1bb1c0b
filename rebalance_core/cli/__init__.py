"""The command line, `rebalance JOB`: a job parses its options, calls a service and renders the
result.

May import every package, but not pyspark. Options are parsed before any optional package is
imported. Begin with `main`, then `jobs` and `job_options`, then a job, such as `simulate`.
"""
