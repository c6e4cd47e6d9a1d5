"""Triton kernels, for a GPU; under TRITON_INTERPRET=1 they run on a CPU, slowly, for tests."""
