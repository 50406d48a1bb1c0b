"""Which files a collection has, what each one is, and ``collection.toml``.

Begin with `collection.open_collection`. May import `parse`, `contracts`, `model` and `strategies`;
of the files it reads only ``collection.toml`` and ``consumer_groups.jsonl``.
"""
