"""The command line, `rebalance JOB`: a job parses its options, calls a service, renders the result.

May import every package, but not pyspark. Options are parsed before anything that has to be
installed is imported. Begin with `main`, then `jobs` and `job_options`, then a job, such as
`simulate`.
"""
