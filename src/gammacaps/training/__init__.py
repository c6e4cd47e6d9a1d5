"""Losses, the loop, schedules and checkpoints."""
