"""The lines of broker.log, lock.log, namesrv.log and rocketmq_client.log.

A template has the words that a message begins with and a reader of its fields; the fact it yields
is declared in `contracts.log_facts`. May import `parse.text`, `fact`, `refusal` and `contracts`.
Begin with `lock_log`.
"""
