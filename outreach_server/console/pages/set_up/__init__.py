"""The pages of what a workspace and the server are set up with: lists and forms that follow from definitions."""
