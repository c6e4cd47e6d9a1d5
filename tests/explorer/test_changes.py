"""What is done to an image before the network sees it, sentences that say why, and the patches of capsules."""

import dataclasses

import pytest
import torch

from gammacaps.errors import InputError
from gammacaps.explain.parsing import parse_tree
from gammacaps.explorer import answers
from gammacaps.explorer.answers.breaking import radii_with
from gammacaps.explorer.answers.patches import middle_of
from gammacaps.explorer.answers.why import because, why
from gammacaps.explorer.changes import changed, read_change
from gammacaps.explorer.questions import read_attack, read_breaking, read_parse

SAMPLE = {"image": {"sample": 3}}


def quiet(done, of):
    pass


def test_a_square_is_turned_shifted_and_darkened():
    image = torch.zeros(1, 8, 8)
    image[0, 1:3, 1:3] = 1  # at the top left
    turned = changed(image, read_change({"turn": 90}))
    assert torch.equal(turned[0].nonzero(), torch.tensor([[1, 5], [1, 6], [2, 5], [2, 6]]))
    shifted = changed(image, read_change({"right": 3, "down": 1, "dark": 0.6}))
    assert torch.equal(shifted[0].nonzero(), torch.tensor([[2, 4], [2, 5], [3, 4], [3, 5]]))
    assert shifted.max().item() == pytest.approx(0.4, abs=1 / 255)
    blurred = changed(image, read_change({"blur": 1}))
    assert 0.2 < blurred.max() < 0.9
    assert blurred[0, 3, 3] > 0
    assert changed(image, read_change({"turn": 0})) is image
    colour = torch.rand(3, 5, 7)
    assert changed(colour, read_change({"turn": 12, "blur": 2})).shape == colour.shape


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"zoom": 2}, "change must be an object"),
        ([1], "change must be an object"),
        ({"turn": 400}, "turn must be a number from -180 to 180, not 400"),
        ({"blur": -1}, "blur must be a number from 0 to 8"),
    ],
)
def test_a_change_that_makes_no_sense_is_one_sentence(networks, change, words):
    with pytest.raises(InputError, match=words):
        read_parse({**SAMPLE, "change": change}, networks)


def test_a_changed_image_is_parsed_attacked_and_compared_with_what_it_was(networks):
    network, change = networks[0], {"turn": 30}
    plain = answers.parse(read_parse(SAMPLE, networks), network)
    turned = answers.parse(read_parse({**SAMPLE, "change": change}, networks), network)
    assert "changed" not in plain
    image = changed(network.images[3], (("turn", 30.0),))
    with torch.no_grad():
        assert turned["scores"] == pytest.approx(network.model(image.unsqueeze(0))[0].tolist(), abs=1e-4)
    before, after = (
        dict(
            zip(each["tree"]["layers"][0]["nodes"]["index"], each["tree"]["layers"][0]["nodes"]["parent"], strict=True)
        )
        for each in (plain, turned)
    )
    moved = [capsule for capsule, _, _ in turned["changed"]["layers"][0]["moved"]]
    assert moved == [i for i in before if i in after and before[i] != after[i]]
    attacked = answers.attack(read_attack({**SAMPLE, "change": change, "eps": 0}, networks), network, quiet)
    assert attacked["clean"]["pixels"] == turned["pixels"]


def test_a_coarse_attack_stays_within_its_radius_and_draws_one_iteration(networks):
    found = answers.attack(read_attack({**SAMPLE, "eps": 0.1, "coarse": True}, networks), networks[0], quiet)
    assert [len(side) for side in found["drawings"]] == [1, 1]
    assert 0 < found["difference"]["largest"] <= 0.1 + 1e-6


@pytest.mark.slow
def test_the_weakest_attack_breaks_and_one_step_less_does_not(networks):
    network = networks[0]
    found = answers.breaking(read_breaking(SAMPLE, networks), network, quiet)
    before, now = found["predicted"]
    for eps, answer in ((found["eps"], now), (found["held"], before)):
        made = answers.attack(read_attack({**SAMPLE, "eps": eps}, networks), network, quiet)
        assert made["attacked"]["predicted"] == answer
    assert before != now


@pytest.mark.slow
@pytest.mark.parametrize("eps", [8 / 255, 2 / 255, 0.9])
def test_the_weakest_attack_agrees_with_an_attack_at_the_training_s_radius(networks, eps):
    trained = [dataclasses.replace(networks[0], eps=eps)]
    at_it = answers.attack(read_attack(SAMPLE, trained), trained[0], quiet)
    found = answers.breaking(read_breaking(SAMPLE, trained), trained[0], quiet)
    breaks_at_it = at_it["attacked"]["predicted"] != at_it["clean"]["predicted"]
    assert (found["eps"] <= eps) == breaks_at_it
    assert found["held"] < found["eps"]


def test_the_radii_that_are_tried_have_the_one_that_is_asked_for_among_them():
    assert len(radii_with(0.1)) == 101
    assert len(radii_with(8 / 255)) == 102
    assert radii_with(8 / 255)[6:9] == [0.03, 8 / 255, 0.035]
    assert radii_with(2)[-1] == 0.5  # no more than the page tries


def with_active_classes(tree):
    top = tree.layers[-1]
    return dataclasses.replace(tree, layers=(*tree.layers[:-1], dataclasses.replace(top, activations=(1.0,) * 10)))


def test_the_sentence_names_what_leads_to_the_answer_and_what_is_absent(networks):
    network = networks[0]
    tree = parse_tree(network.model, network.images[3], tau=0.1, class_names=network.class_names)
    names = {(1, i): f"name {i}" for i in range(6)}
    row = {"kind": "gamma-capsule", "classes": [tree.predicted]}
    rows = [{**row, "capsule": i} for i in range(6)]
    audit = {**network.audit, "layers": [{"layer": "hidden 1", "capsules": rows}]}
    named = dataclasses.replace(network, audit=audit)
    named.__dict__["names"] = names
    led = [i for i, node in tree.nodes_of(1).items() if node.active and node.parent == tree.predicted]
    said = why(tree, named)
    assert sorted(capsule for _, capsule in said["capsules"]) == sorted(led)
    verdict = tree.class_names[tree.predicted]
    assert led
    many = "capsules" if len(led) > 1 else "capsule"
    assert said["words"].startswith(f"{verdict}, because the {many} for name {said['capsules'][0][1]}")
    sentence, _, but = said["words"].partition(" active.")
    assert ";" not in sentence  # nothing that stands for another class is absent
    # All six stand for the answer, so that each that is active and chose another class goes astray.
    nodes = {i: node for i, node in tree.nodes_of(1).items() if node.active and i not in led}
    astray = max(nodes, key=lambda i: nodes[i].coupling * nodes[i].activation)
    other = tree.class_names[nodes[astray].parent]
    assert but == f" The capsule for name {astray} is active too, but votes for {other}."
    lengths = tree.layers[1].activations
    audit["layers"][0]["capsules"] = [{**each, "classes": [(tree.predicted + 1) % 10]} for each in rows]
    middling = parse_tree(network.model, network.images[3], tau=sorted(lengths)[1], class_names=network.class_names)
    shortest = sorted(range(6), key=lengths.__getitem__)[:2]
    absent = " and ".join(f"name {i}" for i in shortest)
    assert why(with_active_classes(middling), named)["words"].endswith(f" active; the capsules for {absent} are not.")
    none = parse_tree(network.model, network.images[3], tau=0.99, class_names=network.class_names)
    longest = max(none.layers[-1].activations)
    assert why(none, named)["words"] == (
        f"No class capsule is active (longer than 0.99): {verdict} is named only because something must be answered, "
        f"and its capsule is the longest, {longest:.2f}."
    )
    chosen_by_none = why(with_active_classes(none), named)["words"]
    assert chosen_by_none == f"{verdict}, the longest class capsule, though no active capsule chose it."


def test_the_sentence_is_short_and_tells_capsules_without_a_name_by_their_number():
    assert because([4], []) == "because capsule 4 is active."
    assert because(["tops", 4, "shoes", 7], ["all but Bag"]) == (
        "mainly because the capsules for tops and shoes and capsule 4 are active; the capsule for all but Bag is not."
    )
    assert because(["shoes and Bag", "tops"], []) == "because the capsules for “shoes and Bag” and tops are active."


def test_a_patch_is_the_middle_of_what_a_capsule_depends_on(networks):
    assert middle_of(torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0])) == (0.25, 0.75)
    assert middle_of(torch.zeros(4)) == (0.0, 1.0)
    found = answers.patches(networks[0], quiet)
    rows, columns = found["grid"]
    centres = torch.tensor([[box[0] + box[2] / 2, box[1] + box[3] / 2] for box in found["boxes"]]).view(
        rows, columns, 2
    )
    assert (centres[:, 1:, 0] > centres[:, :-1, 0]).all()  # further to the right, column by column
    assert (centres[1:, :, 1] > centres[:-1, :, 1]).all()
