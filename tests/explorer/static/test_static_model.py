"""The network in JavaScript against PyTorch: capsules, couplings of every iteration, the gradient at the image."""

import pytest
import torch
from former_small import CONVOLUTION

import gammacaps
from gammacaps.explain.ablation import without
from gammacaps.models.browser_form import shape_of, weights_of

TINY = {"filters": 4, "primary_types": 2, "decoder": ()}
NETWORKS = {
    "former small": {**CONVOLUTION, "filters": 8, "primary_types": 2, "hidden": (6,), "decoder": ()},
    "small": {**TINY, "hidden": (5,)},
    # Odd sides: pooling has windows that are cut. Two hidden layers, another activation, another kernel.
    "deep": {**TINY, "hidden": (5, 4), "image_shape": (3, 27, 31), "activation": "silu", "kernel": 5, "depth": 1},
    "rba": {**TINY, "hidden": (5,), "image_shape": (3, 21, 19), "routing": "rba", "iterations": 4},
    "no hidden layer": {**TINY, "hidden": (), "routing_bias": False, "iterations": 1, "image_shape": (2, 9, 16)},
}
RUN = """({ shape, weights, image, real, off, direction, iterations, layer }) => {
  const Real = globalThis[real];
  const { FastProducts, PlainProducts } = gammacaps["products.js"], { assembled } = gammacaps["assembled.js"];
  const { Model } = gammacaps["model.js"];
  let at = 0;
  const all = Real.from(weights), take = (count) => all.subarray(at, (at += count));
  const products = real === "Float32Array" ? new FastProducts(assembled()) : new PlainProducts();
  const model = new Model(shape, take, products, Real);
  let found;
  for (let again = 0; again < 2; again++) { // a second pass finds what the first has left
    const { poses, couplings } = model.parse(Real.from(image), off, iterations ?? undefined);
    const copied = [poses.map((each) => [...each]), couplings.map((layer) => layer.map((each) => [...each]))];
    found = [...copied, [...model.slope(layer, direction.map((weight, capsule) => [capsule, weight]))], at];
  }
  return found;
}"""


def network(name):
    torch.manual_seed(1)
    model = gammacaps.create("small", **NETWORKS[name])
    with torch.no_grad():
        for layer in model.routed:
            layer.weight *= 3  # so that votes are shortened and capsules disagree
    return model.requires_grad_(False)


def run(page, model, image, real, *, off=(), direction, layer, iterations=None):
    weights = torch.cat([tensor.flatten() for tensor in weights_of(model)]).tolist()
    asked = {"shape": shape_of(model), "weights": weights, "image": image.flatten().tolist(), "real": real}
    asked |= {"off": [list(each) for each in off], "direction": direction.tolist(), "layer": layer}
    poses, couplings, gradient, used = page.evaluate(RUN, {**asked, "iterations": iterations})
    assert used == len(weights)
    return poses, couplings, gradient


def expected(model, image, direction, layer):
    """The same by PyTorch: poses and couplings as flat lists, and autograd's gradient."""
    leaf = image.clone().requires_grad_()
    parse = model.parse(leaf.unsqueeze(0))
    (gradient,) = torch.autograd.grad((parse.activations[layer][0] * direction).sum(), leaf)
    couplings = [list(model.couplings_after(k, parse)) for k in range(1, model.iterations)] + [list(parse.couplings)]
    return parse.poses, [list(each) for each in zip(*couplings, strict=True)], gradient


def far(found, wanted):
    """The largest difference, as a share of the largest value."""
    wanted = wanted.detach().flatten().double()
    return ((torch.tensor(found, dtype=torch.float64) - wanted).abs().max() / wanted.abs().max()).item()


def check(found, wanted, near, near_gradient):
    for mine, theirs in zip(found[0], wanted[0], strict=True):
        assert far(mine, theirs) < near
    for layer, theirs in zip(found[1], wanted[1], strict=True):
        assert len(layer) == len(theirs)
        for mine, one in zip(layer, theirs, strict=True):
            assert far(mine, one) < near
    assert far(found[2], wanted[2]) < near_gradient


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("layer", [0, -1])
def test_it_is_pytorch_s_in_float64_and_near_it_in_float32(modules, name, layer):
    model = network(name).double()
    layer %= len(model.layers)
    image = torch.rand(model.image_shape, dtype=torch.float64).float().double()
    direction = torch.randn(model.counts()[layer], dtype=torch.float64)
    wanted = expected(model, image, direction, layer)
    check(run(modules, model, image, "Float64Array", direction=direction, layer=layer), wanted, 1e-12, 1e-11)
    check(run(modules, model, image, "Float32Array", direction=direction, layer=layer), wanted, 1e-5, 2e-5)


@pytest.mark.parametrize("name", ["former small", "rba"])
def test_capsules_can_be_switched_off_and_routing_left_out(modules, name):
    model, layer = network(name).double(), 2
    image = torch.rand(model.image_shape, dtype=torch.float64)
    direction, off = torch.randn(model.classes, dtype=torch.float64), [(0, 3), (1, 2)]
    silenced = without(model, off)
    found = run(modules, model, image, "Float64Array", off=off, direction=direction, layer=layer)
    check(found, expected(silenced, image, direction, layer), 1e-12, 1e-11)
    mean = silenced.mean_votes()
    found = run(modules, model, image, "Float64Array", off=off, direction=direction, layer=layer, iterations=1)
    check(found, expected(mean, image, direction, layer), 1e-12, 1e-11)


def test_a_blank_image_has_a_gradient_of_numbers(modules):
    """Zero vectors: of an image of zeros without biases all capsules are zero."""
    model = network("no hidden layer").double()
    with torch.no_grad():
        for part in (*model.encoder, model.primary.convolution):
            if isinstance(part, torch.nn.Conv2d):
                part.bias.zero_()
    image, direction = torch.zeros(model.image_shape, dtype=torch.float64), torch.ones(10, dtype=torch.float64)
    _, _, gradient = run(modules, model, image, "Float64Array", direction=direction, layer=1)
    assert set(gradient) == {0.0}


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (1, 1, 8),
        (4, 7, 16),  # whole groups of rows
        (5, 512, 8),  # rows left over; one whole block
        (13, 1030, 40),  # blocks left over
    ],
)
def test_the_assembled_product_is_the_plain_one(modules, m, k, n):
    weight, columns = torch.randn(m, k), torch.randn(k, n)
    found = modules.evaluate(
        """([weight, columns, m, k, n]) => {
          const { FastProducts } = gammacaps["products.js"], { assembled } = gammacaps["assembled.js"];
          const products = new FastProducts(assembled());
          products.hold(new Float32Array(3), 3, 1); // others that lie before it
          const held = products.hold(Float32Array.from(weight), m, k), product = new Float32Array(m * n).fill(NaN);
          products.reserve(2 ** 20);
          new Float32Array(products.memory.buffer, products.top).fill(NaN);
          products.run(held, Float32Array.from(columns), product, n);
          return [...product];
        }""",
        [weight.flatten().tolist(), columns.flatten().tolist(), m, k, n],
    )
    assert far(found, weight.double() @ columns.double()) < 1e-5


def test_random_numbers_are_torch_s(modules):
    wanted = torch.rand(2000, generator=torch.Generator().manual_seed(7))
    draw = "() => { const draw = gammacaps['random.js'].uniform(7); return Array.from({ length: 2000 }, draw); }"
    assert torch.equal(torch.tensor(modules.evaluate(draw)), wanted)
