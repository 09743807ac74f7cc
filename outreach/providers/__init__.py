"""Carriers and voice providers of requests: adapters, account connections, requests."""
