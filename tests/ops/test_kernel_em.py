"""The kernels of EM routing against the formula in float64: on a GPU, or in Triton's interpreter."""

import functools
import inspect
import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

import triton
import triton.language as tl

import gammacaps
from gammacaps.bench.gate import GRADIENT_LIMIT, OUTPUT_LIMIT
from gammacaps.errors import InputError
from gammacaps.nn import MatrixCapsules, layers_of
from gammacaps.ops.em.kernels import launch, parents
from gammacaps.ops.em.kernels.votes import divided, divisor
from gammacaps.ops.em.route import vote_and_route
from gammacaps.ops.em.windows import Windows

pytestmark = pytest.mark.slow  # in Triton's interpreter

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

# (samples, grid, types below, types above, kernel, stride), each with the reason that it is there.
SIZES = {
    "first layer": (3, (3, 4), 8, 16, 3, 2),  # the paper's, of one position; a column that no window reaches
    "second layer": (1, (4, 4), 2, 16, 3, 1),  # its windows: a child stands in up to four of four
    "class layer": (3, (2, 3), 2, 10, None, 1),  # shared matrices, coordinate addition, parents filled up
    "odd": (9, (4, 5), 1, 3, 3, 2),  # 9 samples where a program has 8, and K less than its children
    "one parent": (2, (3, 3), 1, 1, 2, 1),  # shares are between positions alone
    "many parents": (1, (2, 3), 1, 33, 2, 1),  # more than a warp has lanes
    "gaps": (2, (5, 2), 2, 4, 2, 3),  # children between windows
}


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch):
    """Fresh memory holds NaN, so that an element nobody wrote shows."""
    for name in ("empty", "empty_like"):
        old = getattr(torch, name)
        monkeypatch.setattr(torch, name, lambda *a, old=old, **k: nan_filled(old(*a, **k)))


def nan_filled(tensor):
    return tensor.fill_(float("nan")) if tensor.is_floating_point() and tensor.device.type != "meta" else tensor


def layer_of(size, iterations=2):
    """A layer, and what it is given: poses and activations, all in float32."""
    B, grid, lower, types, kernel, stride = SIZES[size]
    layer = MatrixCapsules(grid, lower, types, kernel=kernel, stride=stride, iterations=iterations)
    layer.beta_a.data = 100 * torch.randn(types)  # so that activations are neither 0 nor 1
    n = grid[0] * grid[1] * lower
    poses, activations = torch.randn(B, n, 16), torch.rand(B, n)
    return layer.to(DEVICE), poses.to(DEVICE), activations.to(DEVICE)


def routed(layer, poses, activations, backend, dtype=torch.float32, grads=(), wanted=None):
    """Poses, activations and couplings, and the gradients of all that is wanted."""
    leaves = [t.detach().to(dtype) for t in (poses, activations, layer.weight, layer.beta_v, layer.beta_a)]
    for leaf, want in zip(leaves, wanted or [True] * 5, strict=True):
        leaf.requires_grad_(want)
    places = layer.places if layer.shared else None
    how = (layer.fields, layer.parents, places, layer.iterations, layer.windows, backend)
    out = vote_and_route(*leaves, *how)
    total = sum((o * g.to(o)).sum() for o, g in zip(out, grads, strict=False) if g is not None and o.requires_grad)
    learning = [leaf for leaf in leaves if leaf.requires_grad]
    return list(out), list(torch.autograd.grad(total, learning)) if grads else []


def random_grads(layer, poses):
    B, L, K, J = len(poses), layer.windows.L, layer.windows.K, layer.types
    return [torch.randn(*shape, device=DEVICE) for shape in ((B, L, J, 16), (B, L, J), (B, L, K, J))]


def check(ours, exact, plain=None):
    """Errors are a tenth of what the gate of `gammacaps bench` allows, or as large as plain float32's by a factor."""
    for limit, mine, right, own in zip((OUTPUT_LIMIT, GRADIENT_LIMIT), ours, exact, plain or ours, strict=True):
        assert len(mine) == len(right)
        for place, (one, other, beside) in enumerate(zip(mine, right, own, strict=True)):
            assert one.shape == other.shape
            error, usual = (((tensor.double() - other).norm() / other.norm()).item() for tensor in (one, beside))
            most = limit / 10 if plain is None else max(limit / 10, 10 * usual)
            assert error <= most, f"{place}: {error:.1e}"  # NaN fails


@pytest.mark.parametrize("size", SIZES)
def test_results_and_gradients_are_the_formula_s_at_odd_sizes(size):
    layer, poses, activations = layer_of(size)
    grads = random_grads(layer, poses)
    ours = routed(layer, poses, activations, "triton", grads=grads)
    check(ours, routed(layer, poses, activations, "torch", torch.float64, grads))
    again = routed(layer, poses, activations, "triton", grads=grads)
    for one, other in zip(ours[0] + ours[1], again[0] + again[1], strict=True):
        assert torch.equal(one, other)  # sums have a fixed order


@pytest.mark.parametrize("iterations", [1, 3])  # 2 is above
@pytest.mark.parametrize("size", ["second layer", "class layer"])
def test_results_and_gradients_are_the_formula_s_for_any_number_of_iterations(size, iterations):
    layer, poses, activations = layer_of(size, iterations)
    grads = random_grads(layer, poses)
    ours = routed(layer, poses, activations, "triton", grads=grads)
    plain = routed(layer, poses, activations, "torch", grads=grads)  # each iteration adds to what float32 errs
    check(ours, routed(layer, poses, activations, "torch", torch.float64, grads), plain)


@pytest.mark.parametrize("given", [0, 1, 2])
def test_any_output_may_be_the_only_one_with_a_gradient(given):
    layer, poses, activations = layer_of("odd")
    grads = [g if place == given else None for place, g in enumerate(random_grads(layer, poses))]
    wanted = [True, True, True, False, False]  # without activations, the betas have none
    ours = routed(layer, poses, activations, "triton", grads=grads, wanted=wanted)
    check(ours, routed(layer, poses, activations, "torch", torch.float64, grads, wanted))


def test_frozen_weights_and_tensors_of_any_strides():
    layer, poses, activations = layer_of("odd")
    grads = random_grads(layer, poses)
    wanted = [True, True, False, False, False]
    right = routed(layer, poses, activations, "triton", grads=grads)
    layer.weight.data = turned(layer.weight.data)
    ours = routed(layer, turned(poses), turned(activations), "triton", grads=map(turned, grads), wanted=wanted)
    for one, other in zip(ours[0] + ours[1], right[0] + right[1][:2], strict=True):
        assert torch.equal(one, other)


def turned(tensor):
    """The same numbers, the last axis outermost in memory."""
    return tensor.movedim(-1, 0).contiguous().movedim(0, -1)


def test_absent_children_and_votes_that_agree_are_finite_and_the_formula_s():
    layer, poses, activations = layer_of("odd")
    grads = random_grads(layer, poses)
    activations[0], activations[1, 3], activations[2] = 0, 0, 1e-9
    ours = routed(layer, poses, activations, "triton", grads=grads)
    check(ours, routed(layer, poses, activations, "torch", torch.float64, grads))
    layer.weight.data.fill_(0.5)
    same = routed(layer, torch.ones_like(poses), activations, "triton", grads=grads)
    assert all(torch.isfinite(t).all() for t in same[0] + same[1])


def test_the_gradient_of_a_gradient_is_the_formula_s():
    layer, poses, activations = layer_of("one parent")
    found = []
    for backend, dtype in (("triton", torch.float32), ("torch", torch.float64)):
        leaf = poses.to(dtype).requires_grad_()
        weights = [t.detach().to(dtype) for t in (activations, layer.weight, layer.beta_v, layer.beta_a)]
        how = (layer.fields, layer.parents, None, layer.iterations, layer.windows, backend)
        (first,) = torch.autograd.grad(
            vote_and_route(leaf, *weights, *how).poses.square().sum(), leaf, create_graph=True
        )
        found.append(([], [first.detach(), *torch.autograd.grad(first.square().sum(), leaf)]))
    check(*found)


def test_torch_func_and_a_lack_of_windows_are_said_or_use_the_formula():
    layer, poses, activations = layer_of("one parent")
    weights = (layer.weight.detach(), layer.beta_v.detach(), layer.beta_a.detach())

    def total(poses, windows, backend):
        how = (layer.fields, layer.parents, None, layer.iterations, windows, backend)
        return vote_and_route(poses, activations, *weights, *how).poses.sum()

    with pytest.raises(InputError, match=r"torch.func and torch.compile can't look into them. Use backend='auto'"):
        torch.func.grad(total)(poses, layer.windows, "triton")
    with pytest.raises(InputError, match="they need windows over a grid"):
        total(poses, None, "triton")
    with pytest.raises(InputError, match="they compute in float32"):
        total(poses.double(), layer.windows, "triton")
    leaf = poses.clone().requires_grad_()
    (right,) = torch.autograd.grad(total(leaf, layer.windows, "torch"), leaf)
    torch.testing.assert_close(torch.func.grad(total)(poses, layer.windows, "auto"), right)


def test_a_whole_network():
    shape = {"image_shape": (1, 14, 14), "filters": 4, "primary_types": 2, "types": (3, 2), "iterations": 2}
    model = gammacaps.create("matrix", **shape).to(DEVICE).requires_grad_(False)
    images = torch.rand(2, 1, 14, 14, device=DEVICE)
    results = []
    for backend, dtype in (("triton", torch.float32), ("torch", torch.float32), ("torch", torch.float64)):
        model.to(dtype)
        for layer in layers_of(model, MatrixCapsules):
            layer.vote_and_route = functools.partial(vote_and_route, backend=backend)
        leaf = images.to(dtype).requires_grad_()
        scores = model(leaf)
        results.append(([scores.detach()], list(torch.autograd.grad(scores.square().sum(), leaf))))
    ours, plain, exact = results
    check(ours, exact, plain)  # rounding grows from layer to layer, as much with the formula


def test_threads_are_enough_for_all_parents_and_warps_grow_where_positions_are_few():
    for J in (1, 3, 10, 16, 33, launch.MOST_TYPES):
        tile, warps = launch.tile_of(J, 4)
        assert tile["X"] == 32 * warps == tile["Jp"] * tile["T"] * tile["G"]
        assert tile["Jp"] >= J
    windows = Windows.over(14, 14, 8, 3, 2)
    assert (windows.grid, windows.K, windows.children, windows.overlap) == ((6, 6), 72, 1568, (2, 2))
    whole = Windows.over(4, 5, 16, None, 1)
    assert (whole.grid, whole.K, whole.overlap) == ((1, 1), 320, (1, 1))


def test_kernels_over_positions_are_compiled_once_for_layers_and_iterations_alike(monkeypatch):
    variants = {}

    def recorded(kernel, grid, *given, **more):
        names = kernel.arg_names if hasattr(kernel, "arg_names") else list(inspect.signature(kernel.fn).parameters)
        kinds = {n: None if a is None else getattr(a, "dtype", type(a)) for n, a in zip(names, given, strict=False)}
        compiled_for = {n: more[n] for n in ("X", "Jp", "T", "G", "SHARED", "ITERATIONS", "num_warps") if n in more}
        variants.setdefault(kernel, []).append((kinds, compiled_for))

    monkeypatch.setattr(launch, "run", recorded)
    for windows in (Windows.over(14, 14, 8, 3, 2), Windows.over(6, 6, 16, 3, 1)):  # of the preset `matrix`
        launch.warm_up.__wrapped__(16, windows.K, windows, 3, None, 128, learns=True)
    for kernel in (parents.fit_kernel, parents.slopes_kernel, parents.poses_kernel, parents.weight_kernel):
        first, *others = variants[kernel]
        assert others
        assert all(other == first for other in others)


def test_division_by_a_product_is_exact():
    most = launch.MOST_PLACES
    x = torch.tensor([0, 1, 2, 254, 255, 256, 9999, most // 2, most - 2, most - 1] * 3 + [7, 8], device=DEVICE)
    for d in (1, 2, 3, 7, 16, 255, 10007, most - 1, most):
        out = torch.empty(len(x), dtype=torch.int32, device=DEVICE)
        divide_kernel[1,](x.int(), divisor(d), out)
        assert torch.equal(out.long(), x // d), d


@triton.jit
def divide_kernel(x, by, out):
    at = tl.arange(0, 32)
    tl.store(out + at, divided(tl.load(x + at), by))


def test_too_many_children_are_said():
    windows = Windows.over(200, 200, 1, None, 1)
    with pytest.raises(InputError, match="at most 32768 children in a window"):
        vote_and_route(
            torch.zeros(1, 40000, 16, device=DEVICE), torch.zeros(1, 40000, device=DEVICE),
            torch.zeros(1, 1, 4, 4, device=DEVICE), torch.zeros(1, device=DEVICE), torch.zeros(1, device=DEVICE),
            torch.arange(40000)[None], torch.ones(40000, dtype=torch.int64), None, 1, windows, "triton",
        )  # fmt: skip
