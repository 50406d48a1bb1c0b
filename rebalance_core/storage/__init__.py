"""Places that outputs are written to: folders of this machine, S3 and HDFS, through pyarrow.

`place.Place` is what writers and readers take; it opens file systems and reduces a store's answer
to a line. `run_folder` reads the record of a run and compares tables with it.
"""
