"""What the engine and its server are compared with: `make bench`; docs/performance.md tells how."""
