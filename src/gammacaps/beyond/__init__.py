"""What a network withstands beyond its ball: other norms, turns and shifts, bad pictures, things it never saw."""
