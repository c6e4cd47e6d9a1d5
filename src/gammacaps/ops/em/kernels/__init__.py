"""EM routing by Triton kernels, forward and back; under TRITON_INTERPRET=1 they run on a CPU, for tests.

votes      what the kernels share: votes of a tile, which are computed wherever they are needed and never stored
parents    kernels that go over the children of a position: the fit of its parents, and its gradient
children   kernels that go over the windows of a child: the softmax over its parents, and its gradient
launch     `forward` and `backward`: the kernels in their order, and what is kept between them
"""
