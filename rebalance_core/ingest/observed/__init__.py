"""The observed tables: members, ownership and facts as files show them, without inference.

Begin with `fact_rows`; `log_rows` and `document_facts` make rows of evidence, `cluster_facts` those
that concern no single group. `file_findings` says which files are missing or not understood. May
import `events`, `evidence`, `collection`, `parse`, `contracts` and `model`.
"""
