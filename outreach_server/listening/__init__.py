"""Connections: how many there are, how long each may take, and what is answered to what is no HTTP."""
