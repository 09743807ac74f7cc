"""Moving contacts and requests of ended campaigns into SQLite files of their own."""
