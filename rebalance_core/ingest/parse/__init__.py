"""Parsers from text to facts: facts with their places, and unreadable parts.

Modules named after logs read line by line, modules for stores and mqadmin read whole documents, all
with `log_lines`, `java_text` and `json_tables`. A parser knows one format and no other files. May
import `contracts` and `model`; of `ingest` only `fact`. Begin with `lock_and_pop_logs`.
"""
