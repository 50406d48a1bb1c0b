"""Facts, addressed to the group, topic or cluster they are evidence of.

Begin with `evidence.Evidence`. `broker_folders` finds out which broker's files a folder holds;
`evidence_table` is the form in which evidence travels between tasks. May import `collection`,
`contracts` and `model`, pyarrow, and the modules of `ingest` that are in no sub-package.
"""
