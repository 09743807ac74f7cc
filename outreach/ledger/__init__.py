"""The rules of the domain as synchronous functions of a transaction, written once for every storage.

A storage offers tables, not operations such as "commit these intents": otherwise each storage would hold every rule.
The functions log nothing and call nothing outside of the transaction, because they may run again or be undone.
"""
