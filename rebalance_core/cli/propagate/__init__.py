"""The command `propagate`: reads its options, decides where to run, calls a service, renders.

The services are those of `process.propagation` or of `spark.propagation`. May import every package
but those of other jobs; pyspark not by name. Begin with `job`.
"""
