"""What is wrong with the set-up and the data: `engine.diagnose()`."""
