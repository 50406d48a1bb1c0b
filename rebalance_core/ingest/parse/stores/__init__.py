"""The JSON files in which brokers and clients keep configuration and offsets.

One file for each store. May import `parse.text`, `fact`, `refusal` and `model`. Begin with
`message_request_mode_json`.
"""
