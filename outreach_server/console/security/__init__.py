"""The protection of the console: headers, and the checks of forms."""
