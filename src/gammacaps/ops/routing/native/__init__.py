"""Routing in C: `build` compiles routing.c, and `backend` calls it."""
