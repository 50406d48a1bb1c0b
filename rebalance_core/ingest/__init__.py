"""Turns collected files (logs, stores, mqadmin dumps) into input tables and observed tables.

An event passes through these modules in order: `collection` identifies each file, `parse` turns its
text into facts, `evidence` addresses each fact to the group, topic or cluster it concerns, and
`events`, `group_settings_row` and `observed_facts` combine all files' facts about a group, topic or
cluster, including facts that only all files together show (`whole_cluster`).

Begin with `in_process.ingest_collection`, which performs all steps in one process; on Spark, tasks
call the same functions. May import `model`, `contracts`, `strategies`, `protocol`, `client` and
pyarrow. docs/ingest.md has the rules.
"""
