"""What several algorithms are composed of. Importing this imports nothing."""
