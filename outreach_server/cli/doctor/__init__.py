"""What is wrong with a server: the engine's diagnosis, and what only the server knows."""
