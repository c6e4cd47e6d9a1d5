"""`route` by its Triton backend: the same as the plain one, to autograd, to torch.compile and to who asks for both."""

import pytest
import torch

from gammacaps.errors import InputError
from gammacaps.ops import route, rule_named
from gammacaps.ops.routing.backend import Settings
from gammacaps.ops.routing.kernels import operator
from gammacaps.ops.routing.kernels.layers import kernels_for

pytestmark = pytest.mark.slow  # in Triton's interpreter

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

# (I, J, d, D) and the kernels that they are for.
LAYERS = {"whole": (4, 3, 2, 4), "few": (3, 5, 2, 4), "many": (2, 3, 17, 9)}


def inputs(kind, learning):
    I, J, d, D = LAYERS[kind]
    poses = torch.randn(2, I, d, device=DEVICE, requires_grad=True)
    weight = torch.randn(I, d, J, D, device=DEVICE).transpose(1, 2).requires_grad_(learning)
    bias = torch.full((J, D), 0.1, device=DEVICE, requires_grad=learning)
    return poses, weight, bias


@pytest.mark.parametrize("rule", ["sda", "rba"])
@pytest.mark.parametrize(("kind", "learning"), [("whole", False), ("few", True), ("many", True)])
def test_both_backends_give_the_same_values_and_gradients(kind, learning, rule):
    tensors = inputs(kind, learning)
    settings = Settings(rule_named(rule), 3)
    chosen = kernels_for(2, tensors[1].shape, settings, tensors[1].device, learning=learning)
    assert type(chosen).__name__.lower() == kind
    wanted = [t for t in tensors if t.requires_grad]
    results = []
    for backend in ("torch", "triton"):
        v, c = route(*tensors, rule=rule, backend=backend)
        torch.manual_seed(1)
        total = (v * torch.randn(v.shape, device=DEVICE)).sum() + (c * torch.randn(c.shape, device=DEVICE)).sum()
        results.append([v, c, *torch.autograd.grad(total, wanted)])
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)


def test_without_couplings_there_are_none_and_half_precision_comes_back():
    poses, weight, bias = inputs("few", False)
    routed = route(poses.bfloat16(), weight.bfloat16(), bias.bfloat16(), couplings=False, backend="triton")
    assert routed.couplings is None
    assert routed.poses.dtype == torch.bfloat16
    plain = route(poses.bfloat16(), weight.bfloat16(), bias.bfloat16(), backend="torch").poses
    torch.testing.assert_close(routed.poses, plain, rtol=2**-7, atol=2**-7)


def test_a_gradient_of_the_gradient_is_the_plain_one_s():
    poses, weight, bias = inputs("whole", False)
    results = []
    for backend in ("torch", "triton"):
        v = route(poses, weight, bias, couplings=False, backend=backend).poses
        (first,) = torch.autograd.grad(v.square().sum(), poses, create_graph=True)
        results.append(torch.autograd.grad(first.square().sum(), poses)[0])
    torch.testing.assert_close(results[1], results[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_fake_tensors_have_the_shapes_of_real_ones(kind, rule):
    learning = kind != "whole"
    poses, weight, bias = inputs(kind, learning)
    arguments = (poses, weight, bias, rule, 3, True, True, learning)
    torch.library.opcheck(
        operator.route, arguments, test_utils=("test_schema", "test_faketensor", "test_autograd_registration")
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scale_over": "batch"}, "scale distances over each capsule, not over the batch"),
        ({"poses": torch.randn(2, 3, 2, dtype=torch.float64)}, "compute in float32, and the tensors are float64"),
        ({"weight": torch.randn(3, 2, 2, 65)}, "at most 64 entries, not 65"),
    ],
)
def test_what_the_kernels_can_t_do_is_said_when_they_are_asked_for(change, words):
    arguments = {"poses": torch.randn(2, 3, 2), "weight": torch.randn(3, 2, 2, 4), **change}
    with pytest.raises(InputError, match=words):
        route(**{k: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}, backend="triton")
