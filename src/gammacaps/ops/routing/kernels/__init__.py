"""Routing as Triton kernels, for a GPU; under TRITON_INTERPRET=1 they run on a CPU, slowly, for tests.

Three sets of kernels share the work: `whole` for layers so small that a program holds all votes of a sample, `few`
where a program holds those of one lower capsule, and `many` for any number of upper capsules. `layers` has them as
backends, and chooses; `operator` makes them known to autograd and torch.compile; `votes` is what they share.
"""
