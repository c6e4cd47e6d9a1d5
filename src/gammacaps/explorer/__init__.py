"""The report's page, alive: a network to draw for, to attack and to look into, served on this machine."""
