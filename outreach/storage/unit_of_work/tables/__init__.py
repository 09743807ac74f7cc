"""The tables of a transaction.

These rules hold for each of them:

- Values are immutable models and are read as they were written, to the microsecond and the code point.
- A method with a `workspace_id` sees and changes rows of that workspace only.
- `get` returns None for a missing row; `update` and `delete` of one raise `LookupError`; `insert` of an existing one
  raises `AlreadyExists`.
- Identifiers are unique over the whole database, so that `find` has one answer.
- Lists have one documented, total order. Texts are ordered by code points, moments by time.
- Reads in a transaction see its own writes.
"""
