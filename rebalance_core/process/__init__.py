"""The jobs, each written once against a `Runtime` that reads, computes and writes tables in this
process or on Spark.

Each job is a function of tables, plain options and a runtime (by default, this process); it prints
nothing and knows no exit codes.

May import: numpy, pyarrow, and every package but `spark` and `cli`. Begin with `runtime`, then
`simulate`.
"""
