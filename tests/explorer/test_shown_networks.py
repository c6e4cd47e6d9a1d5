"""Which networks a page can show, and on which images."""

import numpy as np
import pytest
import torch
from serving import make_run

from gammacaps.data import StoredImages, StoredSet, load_set, open_set, store_set
from gammacaps.errors import InputError
from gammacaps.evaluation.evaluate import balanced_places
from gammacaps.explorer import answers
from gammacaps.explorer import networks as explorer_networks
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_network, load_networks
from gammacaps.explorer.questions import read_parse
from gammacaps.models.folder import read_config, write_config
from gammacaps.runs.run import EPS


def test_a_run_s_own_test_images_are_there_to_pick_from(networks):
    first = networks[0]
    sample = load_set("fashion-mini", "test")
    assert torch.equal(first.images, sample.images)
    assert first.class_names == sample.class_names
    assert (first.missing, first.source, first.eps) == ("", "fashion-mini", 0.1)
    assert first.counts == (32, 6, 10)
    assert not any(p.requires_grad for p in first.model.parameters())
    assert first.audit is not None
    assert networks[1].audit is None


def test_where_its_data_are_not_here_the_sample_serves_a_network_of_the_same_classes(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMMACAPS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    moved = {"data": str(tmp_path / "moved.npz")}
    alike = load_network(make_run(tmp_path / "alike", train=moved), ExploreConfig())
    assert (alike.source, len(alike.images)) == ("fashion-mini", 500)
    other = load_network(make_run(tmp_path / "other", train=moved, names=list("abcdefghij")), ExploreConfig())
    assert len(other.images) == 0
    assert other.class_names == tuple("abcdefghij")
    assert "moved.npz are not on this machine" in other.missing
    digits = make_run(tmp_path / "digits", train={"data": "mnist"}, names=list("0123456789"))
    assert load_network(digits, ExploreConfig()).note == (
        "Digits drawn for this page. "
        "The images of mnist are not on this machine: gammacaps data mnist fetches them, then start the explorer again."
    )
    silent = load_network(make_run(tmp_path / "silent", train={}, names=list("abcdefghij")), ExploreConfig())
    assert "does not say what it was trained on" in silent.missing


def test_data_can_be_named_and_must_fit(tmp_path, runs):
    images = (np.random.default_rng(0).random((60, 28, 28)) * 255).astype(np.uint8)
    np.savez(tmp_path / "ten.npz", images=images, labels=np.arange(60) % 10)
    np.savez(tmp_path / "two.npz", images=images, labels=np.arange(60) % 2)
    assert len(load_network(runs[0], ExploreConfig(data=str(tmp_path / "ten.npz"))).images) == 10
    with pytest.raises(InputError, match=r"in 10 classes, but .*two.npz has .* in 2"):
        load_network(runs[0], ExploreConfig(data=str(tmp_path / "two.npz")))


def test_a_network_keeps_its_own_classes_whatever_images_it_is_shown(tmp_path, runs):
    images = (np.random.default_rng(0).random((60, 28, 28)) * 255).astype(np.uint8)
    np.savez(tmp_path / "digits.npz", images=images, labels=np.arange(60) % 10)
    networks = load_networks([str(runs[0])], ExploreConfig(data=str(tmp_path / "digits.npz")))
    assert networks[0].class_names == load_set("fashion-mini").class_names
    assert {each["label"] for each in answers.samples(networks[0], None, 0, 10)["samples"]} == {None}
    assert answers.parse(read_parse({"image": {"sample": 3}}, networks), networks[0])["label"] is None
    capsule = answers.capsule(networks[0], 1, 4)
    assert capsule["serves"] is None
    assert {each["label"] for each in capsule["examples"]} == {None}
    with pytest.raises(InputError, match="other classes than the network's: leave class out"):
        answers.samples(networks[0], 3, 0, 10)


def test_a_network_is_named_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("one/mine", "two things/mine"):
        make_run(tmp_path / folder)
    networks = load_networks(["one/mine", "two things/mine"], ExploreConfig())
    assert [network.name for network in networks] == ["one/mine", "two things/mine"]  # else both were "mine"
    facts = [answers.described(network) for network in networks]
    assert [each["given"] for each in facts] == ["one/mine", "'two things/mine'"]
    assert load_networks(["one/mine"], ExploreConfig())[0].name == "mine"
    with pytest.raises(InputError, match=r"one/mine and \./one/mine are the same network: name it once"):
        load_networks(["one/mine", "./one/mine"], ExploreConfig())


def test_of_a_set_on_disk_only_the_images_shown_are_read(tmp_path, monkeypatch):
    store_set("fashion-mini", tmp_path / "stored")
    read, plain = [], StoredImages.__getitem__

    def noted(images, index):
        found = plain(images, index)
        read.append(len(found))
        return found

    def never(data):
        raise AssertionError("the set may be larger than memory")

    monkeypatch.setattr(StoredImages, "__getitem__", noted)
    monkeypatch.setattr(StoredSet, "whole", never)
    monkeypatch.setattr(explorer_networks, "IMAGES", 30)
    run = make_run(tmp_path / "run", train={"data": str(tmp_path / "stored")})
    for config in (ExploreConfig(), ExploreConfig(data=str(tmp_path / "stored"))):
        network = load_network(run, config)
        whole, places = (
            load_set("fashion-mini", "test"),
            balanced_places(open_set(str(tmp_path / "stored"), "test"), 30),
        )
        assert network.source == str(tmp_path / "stored")
        assert torch.equal(network.images, whole.images[places])
        assert torch.equal(network.labels, whole.labels[places])
    assert read == [30, 30]


def test_the_images_that_a_network_was_measured_on_go_before_those_it_was_trained_on(tmp_path):
    images = (np.random.default_rng(0).random((60, 28, 28)) * 255).astype(np.uint8)
    np.savez(tmp_path / "other.npz", images=images, labels=np.arange(60) % 10)
    run = make_run(tmp_path / "run", train={"data": str(tmp_path / "other.npz")})
    assert load_network(run, ExploreConfig()).source == str(tmp_path / "other.npz")
    write_config(run, {**read_config(run), "measured_on": "fashion-mini"})
    assert load_network(run, ExploreConfig()).source == "fashion-mini"


@pytest.mark.parametrize(
    ("train", "eps"),
    [({"robust": True, "eps": 0.3}, 0.3), ({"robust": False, "eps": 0.3}, EPS), ({}, EPS)],
)
def test_the_radius_is_that_of_training_as_in_an_evaluation(tmp_path, train, eps):
    assert load_network(make_run(tmp_path / "run", train=train), ExploreConfig()).eps == eps


def test_two_networks_at_most_and_for_images_of_one_shape(tmp_path, runs):
    first = str(runs[0])
    with pytest.raises(InputError, match="one network or two side by side, not 3"):
        load_networks([first, first, first], ExploreConfig())
    other = make_run(tmp_path / "large", image_shape=(1, 32, 32))
    with pytest.raises(InputError, match="only on the same images"):
        load_networks([first, str(other)], ExploreConfig())
    digits = make_run(tmp_path / "digits", train={"data": "gone.npz"}, names=[str(k) for k in range(10)])
    with pytest.raises(InputError, match=r"different classes \(T-shirt, Trouser, Pullover, ... and 0, 1, 2, ...\)"):
        load_networks([first, str(digits)], ExploreConfig())


def test_a_number_means_the_same_image_to_both_networks(tmp_path, runs):
    names = load_set("fashion-mini").class_names
    images = (np.random.default_rng(0).random((60, 28, 28)) * 255).astype(np.uint8)
    np.savez(tmp_path / "own.npz", images=images, labels=np.arange(60) % 10, class_names=np.array(names))
    own = make_run(tmp_path / "own", train={"data": str(tmp_path / "own.npz")})
    assert len(load_network(own, ExploreConfig()).images) == 10
    first, second = load_networks([str(own), str(runs[0])], ExploreConfig())
    assert torch.equal(first.images, second.images)
    assert torch.equal(first.labels, second.labels)


def test_without_a_name_a_shipped_network_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GAMMACAPS_DATA", raising=False)
    (network,) = load_networks([], ExploreConfig())
    assert (network.name, network.source) == ("fashion-mini", "fashion-mini")
    assert len(network.images) == 500


def test_a_folder_that_is_no_run_is_told(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        load_networks([str(tmp_path / "nowhere")], ExploreConfig())


@pytest.mark.parametrize(
    ("options", "words"),
    [({"port": 70000}, "port must be at most 65,535, not 70000"), ({"host": ""}, "must not be empty")],
)
def test_options_that_can_t_be_are_told(options, words):
    with pytest.raises(InputError, match=words):
        ExploreConfig(**options)


@pytest.mark.slow
def test_without_mnist_its_network_is_shown_drawn_digits_and_knows_them(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMMACAPS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (network,) = load_networks(["mnist"], ExploreConfig())
    assert len(network.images) == 30
    assert (network.missing, network.source, network.labelled) == ("", "drawn digits", True)
    assert network.note.startswith("Digits drawn for this page. The images of mnist are not on this machine: ")
    with torch.no_grad():
        found = network.model(network.images[:10]).argmax(1)
    assert (found == network.labels[:10]).sum() >= 9  # as a person would
    assert answers.samples(network, None, 0, 5)["note"] == network.note


@pytest.mark.slow
def test_without_smallnorb_its_network_is_shown_drawn_toys(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMMACAPS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (network,) = load_networks(["smallnorb"], ExploreConfig())
    assert (len(network.images), network.source, network.labelled) == (15, "drawn toys", True)
    assert network.note.startswith("Toys drawn for this page. The images of smallnorb-unseen are not on this machine: ")
    assert network.images.min() > 0.2
    assert (network.images[:, 0, 0, 0] > 0.85).all()  # dark toys on a light table, as in the data set
    with torch.no_grad():
        found = network.model(network.images).argmax(1)
    assert (found == network.labels).float().mean() > 0.4  # twice what guessing gives
    assert len(set(found.tolist())) >= 3
