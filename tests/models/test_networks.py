import numpy as np
import pytest
import torch
from former_small import CONVOLUTION
from independent import routing

from gammacaps.errors import InputError
from gammacaps.models import create

CAPSULES = ["paper", "small", "deep", "residual", "matrix"]


def parameters(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.slow
def test_parameter_counts_are_the_published_ones():
    assert parameters(create("paper")) == 9_141_680
    assert parameters(create("matrix", classes=5)) == 67_154
    # 5x5x1x32+32, 5x5x32x64+64, 3136x1024+1024, 1024x10+10
    assert parameters(create("cnn")) == 832 + 51_264 + 3_212_288 + 10_250


def multiplications(model) -> int:
    """Multiplications of the convolutions and votes for one image, counted from the modules' shapes."""
    counts = []

    def count(module, inputs, output):
        if isinstance(module, torch.nn.Conv2d):
            counts.append(output[0].numel() * module.weight[0].numel())

    handles = [m.register_forward_hook(count) for m in model.modules()]
    model(torch.rand(1, *model.config.image_shape))
    for handle in handles:
        handle.remove()
    return sum(counts) + sum(layer.weight.numel() for layer in model.routed)


@pytest.mark.slow
def test_the_small_preset_takes_about_40_times_fewer_operations():
    assert 35 < multiplications(create("paper")) / multiplications(create("small")) < 45


@pytest.mark.slow
@pytest.mark.parametrize("preset", [*CAPSULES, "cnn"])
@pytest.mark.parametrize(
    ("image_shape", "classes"),
    [((1, 28, 28), 10), ((3, 32, 32), 5), ((2, 29, 35), 2)],  # the paper's; colour; odd, not square, two classes
)
def test_any_image_size_channel_count_and_class_count(preset, image_shape, classes):
    few = {"paper": {"filters": 8, "primary_types": 2}}.get(preset, {})
    model = create(preset, image_shape=image_shape, classes=classes, **few)
    images = torch.rand(2, *image_shape)
    scores = model(images)
    assert scores.shape == (2, classes)
    assert torch.isfinite(scores).all()
    if preset in CAPSULES:
        assert ((scores >= 0) & (scores <= 1)).all()
        torch.testing.assert_close(model.parse(images).scores, scores)


@pytest.mark.slow
@pytest.mark.parametrize("preset", [*CAPSULES, "cnn"])
def test_no_images_get_no_answers(preset):
    model = create(preset, **{"paper": {"filters": 8, "primary_types": 2}}.get(preset, {}))
    images = torch.rand(2, *model.config.image_shape).requires_grad_()
    scores = model(images[:0])
    assert scores.shape == (0, 10)
    gradients = torch.autograd.grad(scores.sum(), [images, *model.parameters()], materialize_grads=True)
    assert all((gradient == 0).all() for gradient in gradients)
    if preset not in CAPSULES:
        return
    some, none = model.parse(images), model.parse(images[:0])
    for kind in ("poses", "activations", "couplings"):
        for full, empty in zip(getattr(some, kind), getattr(none, kind), strict=True):
            assert empty.shape == (0, *full.shape[1:])
    if preset != "matrix":
        assert model.reconstruct(none).shape == (0, *model.config.image_shape)


@pytest.mark.slow
@pytest.mark.parametrize("preset", CAPSULES)
@pytest.mark.parametrize("overrides", [{}, {"iterations": 1}])
def test_a_parse_has_all_layers_and_their_couplings(preset, overrides):
    model = create(preset, **overrides)
    parse = model.parse(torch.rand(2, 1, 28, 28))
    assert parse.layers[0] == "primary"
    assert parse.layers[-1] == "class"
    assert len(parse.poses) == len(parse.activations) == len(parse.layers) == len(parse.couplings) + 1
    for l, couplings in enumerate(parse.couplings):
        lower, upper = parse.activations[l], parse.activations[l + 1]
        assert couplings.shape == (2, lower.shape[1], upper.shape[1])
        sums = couplings.sum(-1)
        parents = parse.parents[l]
        reached = slice(None) if parents is None else parents > 0
        torch.testing.assert_close(sums[:, reached], torch.ones_like(sums[:, reached]))
    assert parse.scores is parse.activations[-1]
    assert all(c is None for c in model.parse(torch.rand(2, 1, 28, 28), couplings=False).couplings)


def test_several_hidden_layers_and_none():
    for hidden in ((), (6,), (7, 5, 3)):
        model = create("small", hidden=hidden)
        parse = model.parse(torch.rand(1, 1, 28, 28))
        assert [p.shape[1] for p in parse.poses] == [200, *hidden, 10]


@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_the_network_is_its_formulas_from_image_to_scores(rule):
    """A whole network by hand: convolutions by the library, capsules by the independent loops."""
    model = create("small", **CONVOLUTION, filters=4, primary_types=2, hidden=(3,), classes=4, routing=rule).double()
    image = torch.rand(1, 1, 28, 28, dtype=torch.float64)
    first, second = model.encoder[0], model.primary.convolution
    features = torch.nn.functional.conv2d(image, first.weight, first.bias, stride=2).relu()
    features = torch.nn.functional.conv2d(features, second.weight, second.bias, stride=2)[0].detach().numpy()
    # Capsule (row, column, type) holds the channels type * 8 ... type * 8 + 7 of one place.
    poses = [
        routing.squash(features[8 * type_ : 8 * type_ + 8, row, column])
        for row in range(4)
        for column in range(4)
        for type_ in range(2)
    ]
    poses = np.stack(poses)[None]
    for layer in model.routed:
        weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        poses, _ = (routing.sda if rule == "sda" else routing.rba)(poses, weight, bias, 3)
    expected = torch.from_numpy(poses).norm(dim=-1)
    torch.testing.assert_close(model(image), expected, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_one_image_s_scores_do_not_depend_on_its_batch():
    images = torch.rand(3, 1, 28, 28, dtype=torch.float64)
    images[0] = 0
    for preset in ("small", "matrix"):
        model = create(preset).double()
        torch.testing.assert_close(model(images)[2:], model(images[2:]), rtol=0, atol=1e-10)
    batch = create("small", scale_over="batch").double()
    assert (batch(images)[2:] - batch(images[2:])).abs().max() > 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["small", "deep", "residual", "matrix", "cnn"])
def test_blank_images_have_finite_gradients_everywhere(preset):
    model = create(preset)
    for value in (0.0, 1.0):
        images = torch.full((2, 1, 28, 28), value, requires_grad=True)
        model(images).square().sum().backward()
        assert torch.isfinite(images.grad).all()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
        assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_the_decoder_sees_one_capsule_only():
    model = create("small")
    parse = model.parse(torch.rand(2, 1, 28, 28))
    labels = torch.tensor([3, 7])
    images = model.reconstruct(parse, labels)
    assert images.shape == (2, 1, 28, 28)
    assert ((images >= 0) & (images <= 1)).all()
    grads = torch.autograd.grad(images.sum(), parse.poses[-1])[0].abs().sum(-1) > 0
    assert torch.equal(grads.nonzero(), torch.tensor([[0, 3], [1, 7]]))
    longest = model.reconstruct(parse)
    torch.testing.assert_close(longest, model.reconstruct(parse, parse.scores.argmax(-1)))


def reconstruct_without_decoder():
    model = create("small", decoder=())
    model.reconstruct(model.parse(torch.rand(1, 1, 28, 28)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: create("papre"), "no preset 'papre' .did you mean 'paper'"),
        (lambda: create("small", clases=3), "'clases' .did you mean 'classes'"),
        (lambda: create("small", classes=1), "at least 2 classes"),
        (lambda: create("small", hidden=(1,)), "at least 2 capsules"),
        (lambda: create("small", filters=0), "filters must be at least 1"),
        (lambda: create("small", filters=2.5), "filters must be a whole number, not 2.5"),
        (lambda: create("small", routing="em"), "no rule 'em': use one of sda, rba"),
        (lambda: create("small", image_shape=(28, 28)), "image_shape must be a list of 3 whole numbers"),
        (lambda: create("small", hidden=7), r"hidden must be a list of whole numbers, such as \[32\], not 7"),
        (lambda: create("small", routing_bias=1), "routing_bias must be true or false"),
        (lambda: create("paper", image_shape=(1, 8, 8)), "8x8 is smaller than a 9x9 kernel"),
        (lambda: create("small", image_shape=(1, 4, 4)), "2x2 is smaller than a 3x3 kernel"),
        (lambda: create("matrix", image_shape=(1, 6, 6)), "smaller than the 3x3 window"),
        (lambda: create("small")(torch.rand(1, 28, 28)), r"takes images of shape \(B, 1, 28, 28\)"),
        (lambda: create("small")(torch.rand(2, 3, 28, 28)), r"not \(2, 3, 28, 28\)"),
        (lambda: create("small")(torch.zeros(1, 1, 28, 28, dtype=torch.uint8)), "divide bytes by 255"),
        (lambda: reconstruct_without_decoder(), "has no decoder"),
    ],
)
def test_what_can_t_be_built_or_run_gets_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()
