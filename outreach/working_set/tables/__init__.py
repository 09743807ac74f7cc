"""The tables of a transaction.

What holds for each of them:

- Values are immutable models; what is read later equals what was written, to the microsecond and the code point.
- A method that takes a `workspace_id` sees and touches rows of that workspace only.
- `get` returns None where there is nothing; `update` and `delete` of an absent row raise `LookupError`;
  `insert` of a present one raises `AlreadyExists`.
- Identifiers are unique over the whole database, so that `find` has one answer.
- Lists have one documented, total order. Texts are ordered by code points, moments by time.
- Reads in a transaction see its own writes.
"""
