"""Run the command line as `python -m outreach_server`."""

from __future__ import annotations

from outreach_server.cli import main

if __name__ == "__main__":
    main(prog_name="outreach-server")
