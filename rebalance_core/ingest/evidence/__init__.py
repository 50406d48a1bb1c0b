"""Facts addressed to the group, topic or cluster that they are evidence on.

Begin with `evidence.Evidence`. `broker_folders` finds out which broker's files a folder holds;
`evidence_table` is the form in which evidence travels between tasks. May import `collection`,
`contracts` and `model`, pyarrow, and of `ingest` what lies in no folder.
"""
