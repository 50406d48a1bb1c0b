"""The lines of broker.log, lock.log, namesrv.log and rocketmq_client.log.

A template has the words that a message begins with and the reader of its fields; the fact it makes
is declared in `contracts.log_facts`. May import `parse.text`, `fact`, `refusal` and `contracts`.
To begin: `lock_log`.
"""
