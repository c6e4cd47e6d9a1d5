"""Questions that make no sense are refused in one sentence."""

import base64

import pytest
import torch
from serving import make_run

from gammacaps.errors import InputError
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_networks
from gammacaps.explorer.questions import image_of, read_activate, read_attack, read_breaking, read_parse

SAMPLE = {"image": {"sample": 3}}


def test_a_question_is_read_with_what_it_leaves_out_filled_in(networks):
    asked = read_attack({**SAMPLE, "eps": 0, "off": [[1, 3], [0, 2], [1, 3]]}, networks)
    assert (asked.network, asked.attack, asked.eps, asked.target, asked.tau) == (0, "pgd", 0.0, None, 0.1)
    assert asked.off == ((0, 2), (1, 3))
    assert read_attack(SAMPLE, networks).eps == networks[0].eps


def test_pixels_are_the_network_s_own_bytes(networks):
    content = bytes(range(256)) * 3 + bytes(16)
    image = image_of({"pixels": base64.b64encode(content).decode()}, networks[0])
    assert image.shape == (1, 28, 28)
    assert torch.equal((image * 255).round().flatten().byte(), torch.tensor(list(content), dtype=torch.uint8))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "A question is a JSON object"),
        ({}, "Which image"),
        ({**SAMPLE, "netwrok": 1}, "did you mean 'network'"),
        ({**SAMPLE, "network": 2}, "network must be a whole number from 0 to 1, not 2"),
        ({**SAMPLE, "network": True}, "network must be a whole number"),
        ({"image": 3}, "An image is"),
        ({"image": {"sample": 3, "pixels": ""}}, "An image is"),
        ({"image": {"file": "/etc/passwd"}}, "An image is"),
        ({"image": {"sample": 500}}, "sample must be a whole number from 0 to 499, not 500"),
        ({"image": {"sample": "../3"}}, "sample must be a whole number"),
        ({"image": {"pixels": "&&&"}}, "The pixels are no base64"),
        ({"image": {"pixels": "AAAA"}}, "images of 1 x 28 x 28 bytes, one a pixel and channel, not of 3"),
        ({**SAMPLE, "tau": 1}, "tau must be a number from 0 to 0.99, not 1"),
        ({**SAMPLE, "tau": float("nan")}, "tau must be a number"),
        ({**SAMPLE, "tau": float("inf")}, "tau must be a number"),
        ({**SAMPLE, "tau": 10**400}, "tau must be a number from 0 to 0.99, not 10000"),  # larger than any float
        ({**SAMPLE, "tau": [0.1]}, "tau must be a number from 0 to 0.99, not a list"),
        ({"image": {"pixels": ["AAAA"]}}, "The pixels are no base64"),
        ({**SAMPLE, "all": 1}, "all must be true or false"),
        ({**SAMPLE, "last": None}, "last must be true or false, not None"),
        ({**SAMPLE, "off": [3]}, "off must be a list of pairs"),
        ({**SAMPLE, "off": [[1, 3]] * 65}, "at most 64"),
        ({**SAMPLE, "off": [[1, 6]]}, "capsule must be a whole number from 0 to 5, not 6"),
        ({**SAMPLE, "off": [[2, 0]]}, "Class capsules can't be switched off"),
    ],
)
def test_what_is_no_question_about_a_tree_is_told(networks, body, words):
    with pytest.raises(InputError, match=words):
        read_parse(body, networks)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"eps": 1.5}, "eps must be a number from 0 to 1, not 1.5"),
        ({"eps": "0.1"}, "eps must be a number"),
        ({"eps": 1e-320}, "eps must be 0 or a number from 1e-06 to 1, not 1e-320"),
        ({"attack": "pdg"}, "did you mean 'pgd'"),
        ({"attack": {"pgd": 1}}, "There is no attack 'an object'"),
        ({"target": 10}, "target must be a whole number from 0 to 9, not 10"),
        ({"attack": "noise", "target": 1}, "Noise aims at no class"),
        ({"starts": 3}, "There is no field 'starts'"),
    ],
)
def test_what_is_no_question_about_an_attack_is_told(networks, fields, words):
    with pytest.raises(InputError, match=words):
        read_attack({**SAMPLE, **fields}, networks)


def test_a_search_for_the_weakest_attack_begins_at_the_training_s_radius_or_the_one_asked_for(networks):
    assert read_breaking(SAMPLE, networks).eps == networks[0].eps
    assert read_breaking({**SAMPLE, "eps": 0.03}, networks).eps == 0.03
    with pytest.raises(InputError, match="eps must be a number from 1e-06 to 1, not 0"):
        read_breaking({**SAMPLE, "eps": 0}, networks)


def test_a_network_whose_capsules_depend_on_neighbours_is_not_said_to_have_none(tmp_path):
    networks = load_networks([str(make_run(tmp_path / "batch", scale_over="batch"))], ExploreConfig())
    with pytest.raises(InputError, match="depends on the images beside it"):
        read_attack({**SAMPLE, "attack": "vote"}, networks)
    assert read_attack({**SAMPLE, "attack": "pgd"}, networks).attack == "pgd"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"layer": 3, "capsule": 0}, "layer must be a whole number from 0 to 2, not 3"),
        ({"layer": 1}, "capsule must be a whole number from 0 to 5, not None"),
        ({"layer": 1, "capsule": 0, "steps": 100000}, "steps must be a whole number from 1 to 1000"),
        ({"layer": 1, "capsule": 0, "starts": 0}, "starts must be a whole number from 1 to 60"),
    ],
)
def test_what_is_no_question_about_a_capsule_is_told(networks, fields, words):
    with pytest.raises(InputError, match=words):
        read_activate(fields, networks)


@pytest.mark.parametrize(
    "fields",
    [
        {"tau": "9" * 5000},
        {"tau": 10**4000},
        {"tau": [9] * 5000},
        {"9" * 5000: 1},
        {"attack": "9" * 5000},
        {"attack": [9] * 5000},
    ],
)
def test_an_error_never_repeats_a_long_value(networks, fields):
    with pytest.raises(InputError) as error:
        read_attack({**SAMPLE, **fields}, networks)
    assert len(str(error.value)) < 200
