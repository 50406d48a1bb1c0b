"""The JSON files in which brokers and clients keep configuration and offsets.

One file for each store, all of the form of `json_store`. May import `parse.text`, `fact`, `refusal`
and `model`. Begin with `topics_json`.
"""
