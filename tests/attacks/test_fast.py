"""The fast attack against the plain one: the same network, the same gradient, the same images."""

import gc
import weakref

import pytest
import torch
from former_small import CONVOLUTION, FORMER_SMALL

import gammacaps
from gammacaps.attacks.balls import LinfBall
from gammacaps.attacks.fast import FastAttack, fast_attack
from gammacaps.attacks.gradient import climbed
from gammacaps.attacks.losses import LOSSES
from gammacaps.models.frozen import FrozenNetwork
from gammacaps.ops import length

pytestmark = pytest.mark.slow  # in Triton's interpreter

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def _exact_convolutions(monkeypatch):
    """The plain network's convolutions in float32, not in the shorter format that a GPU prefers."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def small_network(**changes):
    """Small enough for the interpreter; its weights large enough that some votes are shortened."""
    convolution = {**CONVOLUTION, "filters": 32, "kernel": 5, "stride": 1, "primary_kernel": 3}
    shape = {**convolution, "image_shape": (1, 9, 9), "decoder": ()}
    capsules = {"primary_types": 2, "primary_size": 4, "hidden": (3,), "hidden_size": 4, "class_size": 4, "classes": 3}
    model = gammacaps.create("small", **{**shape, **capsules, **changes}).to(DEVICE).requires_grad_(False)
    for layer in model.routed:
        layer.weight *= 6
    return model


def stepwise(model, images, labels, **options):
    """The plain attack, as a function that is no module is attacked."""
    return climbed(lambda x: model(x), images, labels, random_start=False, **options)


def some_images(count=3, shape=(1, 9, 9)):
    return torch.rand(count, *shape, device=DEVICE), torch.arange(count, device=DEVICE) % 3


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"routing": "rba"},
        {"hidden": (3, 4)},  # several hidden layers
        {"image_shape": (3, 9, 9)},  # colour
        {"encoder": "deep", "filters": 3, "kernel": 3},  # an encoder without kernels of its own
        {"routing_bias": False, "primary_size": 3},  # primary capsules that are no power of two
        {"classes": 5, "primary_size": 32, "primary_types": 1, "hidden_size": 40},  # too large for few: many
    ],
    ids=str,
)
def test_the_frozen_network_has_the_model_s_capsules_and_image_gradient(changes):
    model = small_network(**changes)
    images, _ = some_images(2, model.config.image_shape)
    network = FrozenNetwork(model, 2, torch.float32)
    poses = network.forward(images)
    leaf = images.clone().requires_grad_()
    plain = model.parse(leaf, couplings=False).poses[-1]
    torch.testing.assert_close(poses, plain, rtol=1e-4, atol=1e-5)
    grad = torch.randn_like(poses)
    torch.testing.assert_close(network.backward(grad), torch.autograd.grad(plain, leaf, grad)[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_attacked_images_are_the_plain_attack_s(loss):
    model = small_network()
    images, labels = some_images()
    ball = LinfBall(images, 0.1)
    # A batch that is not full: what fills it up must not matter.
    fast = FastAttack(model, (4, 1, 9, 9), torch.float32, loss, False)
    attacked = fast.run(images, ball.low, ball.high, labels, 0.03, 2)
    plain = stepwise(model, images, labels, eps=0.1, step=0.03, steps=2, loss=loss)
    # A gradient next to 0 may have another sign.
    assert (attacked != plain).float().mean() < 0.01
    assert ((attacked - images).abs() <= 0.1).all()


def test_new_weights_are_used_once_refreshed_and_targets_are_approached():
    model = small_network()
    images, labels = some_images()
    ball = LinfBall(images, 0.2)
    fast = FastAttack(model, (3, 1, 9, 9), torch.float32, "margin", False)
    toward = FastAttack(model, (3, 1, 9, 9), torch.float32, "margin", False, sign=-1.0)
    toward.run(images, ball.low, ball.high, labels, 0.05, 1)
    first = fast.run(images, ball.low, ball.high, labels, 0.05, 1)
    for parameter in model.parameters():
        parameter.copy_(torch.randn_like(parameter) * 0.3)
    for attack, goal in ((fast, {}), (toward, {"targets": labels})):
        second = attack.run(images, ball.low, ball.high, labels, 0.05, 1)
        assert not torch.equal(first, second)
        plain = stepwise(model, images, labels, eps=0.2, step=0.05, steps=1, **goal)
        assert (second != plain).float().mean() < 0.01


def test_colour_images_are_attacked_alike_and_a_model_is_not_kept_alive():
    model = small_network(image_shape=(3, 9, 9))
    images, labels = some_images(2, (3, 9, 9))
    ball = LinfBall(images, 0.1)
    fast = FastAttack(model, (2, 3, 9, 9), torch.float32, "margin", False)
    attacked = fast.run(images, ball.low, ball.high, labels, 0.03, 1)
    plain = stepwise(model, images, labels, eps=0.1, step=0.03, steps=1)
    assert (attacked != plain).float().mean() < 0.01
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


def test_a_broken_image_stays_as_it_was_broken():
    model = small_network()
    images, _ = some_images()
    labels = (length(model.parse(images).poses[-1]).argmax(1) + 1) % 3  # all are misclassified from the start
    ball = LinfBall(images, 0.2)
    fast = FastAttack(model, (3, 1, 9, 9), torch.float32, "margin", True)
    assert torch.equal(fast.run(images, ball.low, ball.high, labels, 0.05, 2), images)


def test_elsewhere_the_plain_attack_is_used():
    model = small_network()
    images, _ = some_images()
    if DEVICE == "cpu":
        assert fast_attack(model, images, "margin", "linf", False) is None
    assert fast_attack(lambda x: x, images, "margin", "linf", False) is None
    assert fast_attack(model, images, "margin", "l2", False) is None
    assert fast_attack(small_network(scale_over="batch"), images, "margin", "linf", False) is None


@pytest.mark.skipif(DEVICE != "cuda", reason="there is no CUDA device here")
@pytest.mark.parametrize("preset", ["paper", "former small", "deep", "residual", "cnn", "matrix"])
@pytest.mark.parametrize("stop", [False, True])
def test_replayed_steps_are_the_plain_attack_s(preset, stop):
    torch.manual_seed(0)
    former = preset == "former small"
    model = gammacaps.create("paper", **FORMER_SMALL) if former else gammacaps.create(preset)
    model.to(DEVICE)
    images = torch.rand(70, 1, 28, 28, device=DEVICE)
    labels = torch.arange(70, device=DEVICE) % 10
    fast = fast_attack(model, images, "margin", "linf", stop)
    assert fast is not None
    ball = LinfBall(images, 0.3)
    attacked = fast.run(images, ball.low, ball.high, labels, 0.01, 1)
    plain = stepwise(model, images, labels, eps=0.3, step=0.01, steps=1, until_broken=stop)
    assert (attacked != plain).float().mean() < 0.02  # later steps start where rounding turned a sign
    again = [fast.run(images, ball.low, ball.high, labels, 0.01, 5) for _ in range(2)]
    assert torch.equal(*again)
    assert ((again[0] - images).abs() <= 0.3).all()
