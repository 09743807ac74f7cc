"""Connections: their number, their deadlines, and the responses to malformed requests.

Bounds for clients: docs/interface.md#8. A request that is not HTTP/1.1 gets a 400 and the end of the connection;
`Upgrade` is ignored.
"""
