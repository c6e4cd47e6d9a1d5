"""A shipped network on the page without a server: the scores of 50 images, and how many an attack breaks."""

import numpy as np
import pytest
import torch

from gammacaps.attacks.gradient import climbed
from gammacaps.evaluation.specs import live_spec
from gammacaps.explorer.answers.images import SEED
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_networks
from gammacaps.explorer.static.folder import write_folder

IMAGES = 50


@pytest.fixture(scope="module")
def shipped(tmp_path_factory, worker_of):
    """The network, and what the worker of its page answers."""
    config = ExploreConfig(data="fashion-mini")
    place = tmp_path_factory.mktemp("shipped")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)  # where the shipped network is copied to
        (network,) = load_networks(["fashion-mini"], config)
    write_folder([network], place / "page")
    assert sum(file.stat().st_size for file in (place / "page").iterdir()) < 15e6
    return network, worker_of(place / "page")


def asked(sample):
    return {"network": 0, "image": {"sample": sample}, "tau": 0.1, "all": False, "off": [], "last": True}


def test_the_scores_are_the_server_s(shipped):
    network, ask = shipped
    found = [ask("/api/parse", asked(k))["scores"] for k in range(IMAGES)]
    wanted = network.model(network.images[:IMAGES]).numpy()
    assert np.abs(np.array(found) - wanted).max() < 1e-4


def test_an_attack_breaks_as_many(shipped):
    network, ask = shipped
    eps, images, labels = 0.15, network.images[:IMAGES], network.labels[:IMAGES]
    found = [ask("/api/attack", {**asked(k), "attack": "pgd", "eps": eps}) for k in range(IMAGES)]
    page = sum(each["attacked"]["predicted"] == label for each, label in zip(found, labels.tolist(), strict=True))
    # All at once, each from where the server starts, one by one.
    share = torch.rand(1, *network.model.image_shape, generator=torch.Generator().manual_seed(SEED))
    numbers, taken_for = live_spec("pgd", eps), network.model(images).argmax(1)
    how = {"step": numbers.step, "steps": numbers.steps, "loss": numbers.loss}
    attacked = climbed(network.model, images, taken_for, eps=eps, start=images + (2 * share - 1) * eps, **how)
    server = int((network.model(attacked).argmax(1) == labels).sum())
    assert 5 < server < 45  # it breaks some and not all
    assert abs(page - server) <= IMAGES * 2 / 100
