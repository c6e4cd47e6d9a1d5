"""Routing: the table of rules, a formula each, and what computes them faster, chosen in one place.

rules         the table, and each rule's formula
route         `route`, which everything calls
choice        which backend computes it
backend       what a backend is; its gradient within autograd
written_out   the plain backend, on any device
native        C, for a CPU
kernels       Triton, for a GPU
"""
