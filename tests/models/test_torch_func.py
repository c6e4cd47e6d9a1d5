"""torch.func and forward-mode differentiation of whole networks against plain autograd, in float64."""

import pytest
import torch
from former_small import CONVOLUTION
from torch.autograd.forward_ad import dual_level, make_dual, unpack_dual
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

import gammacaps

# torch itself scripts what it makes forward-mode derivatives of.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script.:DeprecationWarning")

CAPSULES = {"filters": 4, "kernel": 5, "primary_types": 2, "primary_size": 3, "hidden": (4,), "hidden_size": 3}
SMALL = CAPSULES | {"primary_kernel": 5, "class_size": 4}
NETWORKS = {
    "convolution": ("small", {"image_shape": (1, 14, 14)} | CONVOLUTION | SMALL),
    "rba": ("small", {"image_shape": (1, 14, 14), "routing": "rba"} | CONVOLUTION | SMALL),
    "deep": ("deep", {"image_shape": (1, 12, 12), "class_size": 4, "activation": "silu"} | CAPSULES),
    "residual": ("residual", {"image_shape": (3, 12, 12), "class_size": 4} | CAPSULES),
    "matrix": ("matrix", {"image_shape": (1, 14, 14), "filters": 4, "primary_types": 2, "types": (2, 2)}),
    "cnn": ("cnn", {"image_shape": (1, 8, 8), "filters": (2, 3), "width": 8}),
}


@pytest.fixture(params=NETWORKS)
def network(request):
    """A network of 3 classes and two images."""
    preset, shape = NETWORKS[request.param]
    model = gammacaps.create(preset, classes=3, **shape).double()
    return model, torch.rand(2, *shape["image_shape"]).double()


def plain_jacobian(model, images):
    """d scores (B, N) / d images, one class after the other."""
    leaf = images.clone().requires_grad_()
    scores = model(leaf)
    rows = [torch.autograd.grad(scores[:, n].sum(), leaf, retain_graph=True)[0] for n in range(scores.shape[1])]
    return torch.stack(rows, dim=1)  # B N C H W


def close(found, right):
    torch.testing.assert_close(found, right, rtol=1e-8, atol=1e-10 * right.abs().max().item())


@pytest.mark.slow
def test_gradients_and_jacobians(network):
    model, images = network
    right = plain_jacobian(model, images)

    def one(image):
        return model(image[None])[0]

    close(grad(lambda x: model(x).sum())(images), right.sum(1))
    close(vmap(one)(images), model(images).detach())
    close(vmap(grad(lambda image: one(image)[1]))(images), right[:, 1])
    close(vmap(jacrev(one))(images), right)
    close(vmap(jacfwd(one))(images), right)


def test_forward_mode_with_and_without_torch_func(network):
    model, images = network
    tangent = torch.randn_like(images)
    right = (plain_jacobian(model, images) * tangent.unsqueeze(1)).flatten(2).sum(-1)
    scores, moved = jvp(model, (images,), (tangent,))
    close(scores, model(images))
    close(moved, right)
    with dual_level():
        close(unpack_dual(model(make_dual(images, tangent))).tangent, right)


def test_second_derivatives(network):
    model, images = network
    pixels = images[0].flatten()[40:43]

    def loss(pixels):
        moved = torch.cat((images[0].flatten()[:40], pixels, images[0].flatten()[43:]))
        return model(moved.view(1, *images.shape[1:])).square().sum()

    close(hessian(loss)(pixels), torch.autograd.functional.hessian(loss, pixels))


def test_the_weights_gradients_image_by_image(network):
    model, images = network
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights, image):
        return functional_call(model, weights, (image[None],)).square().sum()

    found = vmap(grad(loss), (None, 0))(weights, images)
    learned = {n: p for n, p in model.named_parameters() if not n.startswith("decoder")}
    for b in range(len(images)):
        right = torch.autograd.grad(model(images[b : b + 1]).square().sum(), learned.values())
        for name, gradient in zip(learned, right, strict=True):
            close(found[name][b], gradient)


def test_several_networks_at_once(network):
    """vmap over the weights, as for an ensemble."""
    model, images = network
    copies = {name: torch.stack((p.detach(), 0.9 * p.detach())) for name, p in model.named_parameters()}
    found = vmap(lambda weights: functional_call(model, weights, (images,)))(copies)
    for k in range(2):
        one = {name: p[k] for name, p in copies.items()}
        close(found[k], functional_call(model, one, (images,)).detach())


@pytest.mark.parametrize("network", [name for name in NETWORKS if name != "cnn"], indirect=True)
def test_a_parse_s_couplings(network):
    model, images = network
    leaf = images.clone().requires_grad_()
    (right,) = torch.autograd.grad(model.parse(leaf).couplings[0].square().sum(), leaf)
    close(vmap(grad(lambda image: model.parse(image[None]).couplings[0].square().sum()))(images), right)
