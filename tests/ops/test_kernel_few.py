"""The kernels for few upper capsules against the reference in float64: on a GPU, or in Triton's interpreter."""

import pytest
import torch

from gammacaps.ops import rule_named
from gammacaps.ops.routing.kernels import few
from gammacaps.ops.routing.rules import route_by_formula

pytestmark = pytest.mark.slow  # in Triton's interpreter

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# (B, I, J, d, D), each with the reason that it is there.
SIZES = [
    (3, 5, 4, 8, 8),  # fewer upper capsules than lanes, fewer samples than a tile has
    (1, 3, 10, 3, 5),  # one sample, and no size a power of two
    (
        17,
        9,
        32,
        8,
        8,
    ),  # the paper's hidden layer but for I, with one sample more than a tile; I not a multiple of a tile
    (2, 1, 2, 1, 1),  # the smallest layer there is
    (2, 3, 40, 2, 3),  # more upper capsules than lanes
]


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch):
    """Fresh memory holds NaN, so that an element nobody wrote shows."""
    empty, empty_like = torch.empty, torch.empty_like
    monkeypatch.setattr(torch, "empty", lambda *a, **k: empty(*a, **k).fill_(float("nan")))
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: empty_like(*a, **k).fill_(float("nan")))


def inputs(size):
    """Poses, weights and a bias in float64, as float32 can hold them; votes are longer and shorter than capsules."""
    B, I, J, d, D = size
    poses, weight, bias = torch.randn(B, I, d) * 0.6, torch.randn(I, d, J, D).transpose(1, 2), torch.randn(J, D) * 0.1
    weight = weight * torch.linspace(0.3, 2.5, J)[:, None, None] / D**0.5
    return [t.to(DEVICE, torch.float64) for t in (poses, weight, bias)]


def by_reference(tensors, grads, rule, iterations, dtype):
    """v, c, and the gradients at poses, weight and bias, through autograd in the given dtype."""
    tensors = [t.detach().to(dtype).requires_grad_() for t in tensors]
    plain = route_by_formula(rule_named(rule), *tensors, iterations)
    total = sum((out * grad.to(dtype)).sum() for out, grad in zip(plain, grads, strict=True) if grad is not None)
    gradients = torch.autograd.grad(total, tensors, allow_unused=True)
    gradients = [torch.zeros_like(t) if g is None else g for g, t in zip(gradients, tensors, strict=True)]
    return [t.detach().double() for t in (*plain, *gradients)]


def by_kernels(tensors, grads, rule, iterations):
    """The same through the kernels."""
    poses, weight, bias = (t.float() for t in tensors)
    B = len(poses)
    layer = few.TiledLayer(B, weight.shape, rule, DEVICE)
    arranged = layer.arrange_weight(weight)
    v, kept = layer.forward(poses, arranged, bias, iterations, True)
    grad_v, grad_c = (None if g is None else g.float() for g in grads)
    grad_poses, grad_weight, at_sums = layer.backward(kept, arranged, grad_v, grad_c, True, True)
    grad_bias = layer.plain_vectors(at_sums[:, :B].sum((0, 1)))
    return [t.double() for t in (v, layer.plain_couplings(kept), grad_poses, grad_weight, grad_bias)]


def assert_as_good_as_float32(results, plain, true):
    """The error is at most twice that of plain float32.

    Or that of a GPU's own exp2 and rsqrt, some 2**-22 each, where plain float32 was lucky with its few numbers.
    """
    for name, ours, theirs, right in zip(("v", "c", "poses", "weight", "bias"), results, plain, true, strict=True):
        assert ours.shape == right.shape
        limit = 2 * (theirs - right).norm() + 2**-20 * right.norm() + 2**-23
        assert (ours - right).norm() <= limit, name


# RBA shares all that depends on a size with SDA; of the largest one that is enough.
@pytest.mark.parametrize(
    ("rule", "size"), [*(("sda", size) for size in SIZES), *(("rba", size) for size in SIZES if size[0] < 17)], ids=str
)
def test_values_and_all_gradients_are_the_reference_s(size, rule):
    tensors = inputs(size)
    B, I, J, _, D = size
    grads = [torch.randn(B, J, D).to(tensors[0]), torch.randn(B, I, J).to(tensors[0])]
    true, plain = (by_reference(tensors, grads, rule, 3, dtype) for dtype in (torch.float64, torch.float32))
    assert_as_good_as_float32(by_kernels(tensors, grads, rule, 3), plain, true)


@pytest.mark.parametrize("rule", ["sda", "rba"])
@pytest.mark.parametrize("iterations", [1, 2, 4])
@pytest.mark.parametrize("missing", [0, 1])
def test_any_number_of_iterations_and_either_gradient_alone(rule, iterations, missing):
    tensors = inputs((2, 3, 5, 2, 4))
    grads = [torch.randn(2, 5, 4).to(tensors[0]), torch.randn(2, 3, 5).to(tensors[0])]
    if iterations > 1 or missing == 1:  # the first couplings are constant: they alone have no gradient
        grads[missing] = None
    true, plain = (by_reference(tensors, grads, rule, iterations, dtype) for dtype in (torch.float64, torch.float32))
    assert_as_good_as_float32(by_kernels(tensors, grads, rule, iterations), plain, true)


@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_zero_vectors_have_finite_values_and_gradients(rule):
    tensors = inputs((2, 4, 3, 2, 4))
    tensors[0][:, 1] = 0
    tensors[1][2] = 0
    tensors[2][1] = 0
    grads = [torch.ones(2, 3, 4).to(tensors[0]), torch.ones(2, 4, 3).to(tensors[0])]
    true, plain = (by_reference(tensors, grads, rule, 3, dtype) for dtype in (torch.float64, torch.float32))
    assert_as_good_as_float32(by_kernels(tensors, grads, rule, 3), plain, true)
    nothing = [torch.zeros_like(t) for t in tensors]
    assert all(t.isfinite().all() for t in by_kernels(nothing, grads, rule, 3))


def test_a_sample_s_result_does_not_depend_on_its_batch():
    tensors = inputs((18, 3, 4, 2, 4))
    grads = [torch.randn(18, 4, 4).to(tensors[0]), None]
    together = by_kernels(tensors, grads, "sda", 3)
    alone = by_kernels([tensors[0][17:], *tensors[1:]], [grads[0][17:], None], "sda", 3)
    for name in (0, 1, 2):  # v, c and the gradient of the poses
        assert torch.equal(together[name][17:], alone[name])


@pytest.mark.parametrize(("J", "d", "D", "fits"), [(32, 8, 8, True), (10, 8, 16, True), (1000, 8, 16, False)])
def test_layers_whose_weights_do_not_fit_in_registers_are_left_to_other_kernels(J, d, D, fits):
    assert few.fits(J, d, D) == fits


@pytest.mark.skipif(DEVICE.type != "cuda", reason="the interpreter is too slow for the paper's layer")
def test_the_paper_s_hidden_layer_at_full_size():
    size = (128, 1152, 32, 8, 8)
    tensors = inputs(size)
    grads = [torch.randn(128, 32, 8).to(tensors[0]), None]
    true, plain = (by_reference(tensors, grads, "sda", 3, dtype) for dtype in (torch.float64, torch.float32))
    assert_as_good_as_float32(by_kernels(tensors, grads, "sda", 3), plain, true)
