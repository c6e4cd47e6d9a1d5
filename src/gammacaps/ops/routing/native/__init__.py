"""Routing in C: `build` compiles registers.c and routing.c as one, and `backend` calls it."""
