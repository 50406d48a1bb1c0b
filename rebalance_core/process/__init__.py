"""The jobs in one process, without a JVM: tables read, made and written with pyarrow.

Each job is a function of tables and plain options, without prints or exit codes, as in `spark`.

May import: numpy, pyarrow, and every package but `spark` and `cli`. Begin with `simulate`.
"""
