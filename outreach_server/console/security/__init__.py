"""What protects the console: headers, and the checks of forms."""
