"""What Python users get: figures that show themselves, and the check of any torch classifier."""
