"""The pages: each reads services of the engine, and gives its template frozen values."""
