"""Runs: a folder, or a network that comes with the package, with all that it says of itself."""
