"""Connections: their number, their deadlines, and the responses to malformed requests."""
