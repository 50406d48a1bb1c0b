"""Parts of what a client answers to ``consumerStatus``: its settings, and what it holds of a queue.

May import `admin_times`, `parse.text` and `refusal`. Begin with `consumer_properties`.
"""
