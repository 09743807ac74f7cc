"""Which carrier or voice provider takes a request: registered adapters, opened accounts, requests to make."""
