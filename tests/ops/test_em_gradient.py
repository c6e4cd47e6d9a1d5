"""The gradient of EM routing by hand against autograd over the formula, in float64."""

import pytest
import torch

from gammacaps.ops.em import em_route, receptive_fields
from gammacaps.ops.em.written_out import em_gradient


@pytest.mark.parametrize(("grid", "kernel", "stride"), [((5, 6), 3, 2), ((4, 4), 3, 1), ((3, 2), 2, 3)])
@pytest.mark.parametrize("iterations", [1, 2, 3])
@pytest.mark.parametrize("absent", [False, True])
def test_it_is_autograd_s(grid, kernel, stride, iterations, absent):
    types, J, B = 2, 3, 2
    children = receptive_fields(*grid, types, kernel, stride)
    L, K = children.shape

    def rand(*shape):
        return torch.randn(*shape, dtype=torch.float64)

    votes, activations, beta_v, beta_a = rand(B, L, K, J, 16), rand(B, grid[0] * grid[1] * types), rand(J), rand(J)
    activations = activations.sigmoid()
    if absent:  # so that what keeps sums from being zero counts
        activations[0], activations[1, 3] = 1e-9, 0
    inputs = [t.requires_grad_() for t in (votes, activations, beta_v, beta_a * 100)]
    out = em_route(*inputs[:2], children, *inputs[2:], iterations=iterations)
    grads = [rand(*t.shape) for t in out]
    total = sum((t * g).sum() for t, g in zip(out, grads, strict=True))
    right = torch.autograd.grad(total, inputs)
    given = [t.detach() for t in inputs]
    mine = em_gradient(*given[:2], children, *given[2:], *grads, iterations=iterations)
    for one, other in zip(mine, right, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9 * other.abs().max().item())
