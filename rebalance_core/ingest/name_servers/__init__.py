"""What name servers know of brokers, and that they know nothing after a start of their own.

May import the evidence and the context. Begin with `BrokerRegistry`.
"""
