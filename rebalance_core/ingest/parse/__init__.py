"""From text to facts: what one place in one file states, and what could not be read.

Modules named after logs read line by line, those of stores and of mqadmin whole documents, all with
`log_lines`, `java_text` and `json_tables`. A parser knows one format and nothing of other files.
May import `contracts` and `model`; of `ingest` only `fact`. Begin with `lock_and_pop_logs`.
"""
