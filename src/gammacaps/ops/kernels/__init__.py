"""Triton kernels beside those of routing and convolution; under TRITON_INTERPRET=1 they run on a CPU, for tests.

squash     what kernels share of the squash
capsules   gradients at capsules
images     steps of images along their gradient
"""
