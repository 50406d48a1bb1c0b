"""The jobs, each written once against a `Runtime`: tables read, made and written, here or on Spark.

Each job is a function of tables, plain options and the place that it runs in, by default this
process, without prints or exit codes.

May import: numpy, pyarrow, and every package but `spark` and `cli`. Begin with `runtime`, then
`simulate`.
"""
