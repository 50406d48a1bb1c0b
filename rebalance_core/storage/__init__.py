"""Places that outputs are written to: folders of this machine, S3 and HDFS, through pyarrow.

`place.Place` is what writers and readers take; `access` opens file systems, `locations` makes
places of what operators write, `table_files` reads what was written, and `store_errors` says in a
line what a store answered.
"""
