"""Places that outputs are written to: folders of this machine, S3 and HDFS, through pyarrow.

Writers and readers take a `place.Place`, which opens file systems and reduces a store's answer to a
line. `run_folder` reads the record of a run and compares tables with it.
"""
