"""Reads contacts from spreadsheets and text files: for the commands, and for uploads over HTTP."""
