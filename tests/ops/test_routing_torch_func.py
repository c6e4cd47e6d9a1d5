"""torch.func, forward-mode differentiation and batches of no images, against plain autograd."""

import pytest
import torch
from torch.autograd.forward_ad import dual_level, make_dual, unpack_dual
from torch.autograd.functional import jacobian
from torch.func import jacfwd, jacrev, jvp, vmap

from gammacaps.errors import InputError
from gammacaps.ops import length, route, squash
from gammacaps.ops.convolution import convolve

# torch itself scripts what it makes forward-mode derivatives of.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script.:DeprecationWarning")

BACKENDS = ["auto", "torch", "triton"]  # on a CPU: compiled code, the written-out gradient, Triton's interpreter
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def example(dtype=torch.float64):
    poses, weight, bias = torch.randn(2, 5, 3), torch.randn(5, 4, 3, 6), torch.randn(4, 6)
    poses[0, 0] = weight[1, 1] = 0
    return poses.to(dtype), weight.to(dtype), bias.to(dtype)


@pytest.mark.parametrize("rule", ["sda", "rba"])
@pytest.mark.parametrize("scale_over", ["capsule", "batch"])
def test_forward_and_reverse_mode_agree_on_the_routing(rule, scale_over):
    inputs = example()

    def both(*given):
        v, c = route(*given, rule=rule, scale_over=scale_over)
        return torch.cat((v.flatten(), c.flatten()))

    right = jacobian(both, inputs)
    for results in (jacfwd(both, (0, 1, 2))(*inputs), jacrev(both, (0, 1, 2))(*inputs)):
        for ours, plain in zip(results, right, strict=True):
            torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_a_tangent_passes_a_gradient_that_was_not_made_for_it(backend):
    """The gradient is linear in what it is given, so that its tangent is the gradient of the tangent."""
    poses, weight, bias = example(torch.float32)
    leaf = poses.requires_grad_()
    v = route(leaf, weight, bias, backend=backend).poses
    given, tangent = torch.randn_like(v), torch.randn_like(v)
    (right,) = torch.autograd.grad(v, leaf, tangent, retain_graph=True)
    with dual_level():
        (gradient,) = torch.autograd.grad(v, leaf, make_dual(given, tangent))
        torch.testing.assert_close(unpack_dual(gradient).tangent, right, rtol=1e-4, atol=1e-5)
        assert not gradient.requires_grad


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_many_gradients_at_once_are_those_one_by_one(backend):
    """As torch.autograd.functional.jacobian(..., vectorize=True) asks for them."""
    inputs = [t.to(DEVICE).requires_grad_() for t in example(torch.float32)]
    given = torch.randn(3, 2, 4, 6, device=DEVICE)
    results = torch.autograd.grad(route(*inputs, backend=backend).poses, inputs, given, is_grads_batched=True)
    plain = route(*inputs, backend="torch").poses
    for k in range(3):
        right = torch.autograd.grad(plain, inputs, given[k], retain_graph=True)
        for ours, one in zip(results, right, strict=True):
            torch.testing.assert_close(ours[k], one, rtol=1e-3, atol=1e-5)


def test_the_kernels_say_that_they_can_t_be_transformed():
    poses, weight, _ = example(torch.float32)
    with pytest.raises(InputError, match=r"torch\.func and forward-mode differentiation can't look into them"):
        vmap(lambda p: route(p[None], weight, backend="triton").poses)(poses)


def test_zero_vectors_have_tangents_of_zero():
    zero, tangent = torch.zeros(3, 4), torch.ones(3, 4)
    for function in (length, squash):
        value, moved = jvp(function, (zero,), (tangent,))
        assert (value == 0).all()
        assert (moved == 0).all()
    weight = torch.randn(3, 2, 4, 5)
    for rule in ("sda", "rba"):
        _, moved = jvp(lambda p, rule=rule: tuple(route(p[None], weight, rule=rule)), (zero,), (tangent,))
        assert all(part.isfinite().all() for part in moved)


def test_half_precision_and_autocast_are_as_without_a_transform():
    poses, weight, bias = example(torch.bfloat16)
    with torch.autocast("cpu"):
        results = vmap(lambda p: route(p[None], weight, bias).poses[0])(poses)
        right = route(poses, weight, bias).poses
    assert results.dtype == torch.bfloat16
    torch.testing.assert_close(results, right)


def test_a_convolution_s_tangent_and_its_gradients_image_by_image():
    images, weight, bias = torch.rand(3, 2, 9, 8).double(), torch.randn(4, 2, 3, 3).double(), torch.randn(4).double()
    right = jacobian(lambda w: convolve(images, w, bias, 2).sum((1, 2, 3)), weight)
    results = vmap(jacrev(lambda w, x: convolve(x[None], w, bias, 2).sum()), (None, 0))(weight, images)
    torch.testing.assert_close(results, right)
    torch.testing.assert_close(jacfwd(lambda w: convolve(images, w, bias, 2).sum((1, 2, 3)))(weight), right)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_no_samples_are_routed_to_no_capsules(backend, rule):
    inputs = [t.to(DEVICE).requires_grad_() for t in example(torch.float32)]
    v, c = route(inputs[0][:0], *inputs[1:], rule=rule, backend=backend)
    assert v.shape == (0, 4, 6)
    assert c.shape == (0, 5, 4)
    for leaf, gradient in zip(inputs, torch.autograd.grad(v.sum() + c.sum(), inputs), strict=True):
        assert gradient.equal(torch.zeros_like(leaf))
    assert route(inputs[0][:0], inputs[1], rule=rule, backend=backend, couplings=False).couplings is None


def test_no_samples_are_scaled_over_no_batch():
    inputs = [t.requires_grad_() for t in example()]
    v, _ = route(inputs[0][:0], *inputs[1:], scale_over="batch")
    assert v.shape == (0, 4, 6)
    assert torch.autograd.grad(v.sum(), inputs[1])[0].equal(torch.zeros_like(inputs[1]))
