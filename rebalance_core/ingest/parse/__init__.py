"""From text to facts: what one place in one file states, and what could not be read.

`logs` reads line by line, `stores` and `mqadmin` read whole documents, all with the tools of
`text`. A parser knows one format and nothing of other files. May import `contracts` and `model`;
of `ingest` only `fact` and `refusal`. Begin with `logs.lock_log`, the smallest log.
"""
