"""Parsers that turn text into facts with their locations, and into unreadable parts.

Modules named after logs read line by line and modules for stores and mqadmin read whole documents,
all using `log_lines`, `java_text` and `json_tables`. A parser knows one format and no other files.
May import `contracts` and `model`, and from `ingest` only `fact`. Begin with `lock_and_pop_logs`.
"""
