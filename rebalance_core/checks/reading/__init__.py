"""Files of JSON lines, CSV and Parquet as Arrow tables, with the values that Spark reads.

`files` finds them, `lines` numbers their lines; each format has its file. Regular text goes through
pyarrow's parsers; what they would read otherwise than Spark goes through `json_text`, `csv_text`.
"""
