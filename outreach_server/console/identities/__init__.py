"""The console's own logins: users, sessions and links of the engine (docs/users.md)."""
