"""The rules of the domain as synchronous functions of a transaction, written once for every storage."""
