"""Answers: the same as the library gives for the same question."""

import base64
import dataclasses
import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from PIL import Image
from serving import make_run

import gammacaps
from gammacaps import explain
from gammacaps.attacks import table as attack_table
from gammacaps.attacks.table import attack_named
from gammacaps.errors import InputError
from gammacaps.explain.kept_inputs import generated_of, inputs_of, usual_way
from gammacaps.explorer import answers, questions
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.drawing import PALETTE, class_colours
from gammacaps.explorer.networks import load_networks
from gammacaps.explorer.questions import read_activate, read_attack, read_parse
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.study import generate, open_study
from gammacaps.runs.run import Run

SAMPLE = {"image": {"sample": 3}}


def quiet(done, total):
    assert 0 <= done <= total


def opened(url):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))


def pixels(answer, shape=(1, 28, 28)):
    return torch.frombuffer(bytearray(base64.b64decode(answer["pixels"])), dtype=torch.uint8).view(shape)


def test_a_parse_is_the_library_s_tree_with_a_drawing_for_each_iteration(networks):
    network = networks[0]
    answer = answers.parse(read_parse({**SAMPLE, "tau": 0.2}, networks), network)
    tree = explain.parse_tree(network.model, network.images[3], tau=0.2, class_names=network.class_names)
    assert answer["tree"] == {**tree.to_json(), "iteration": 3}
    assert answer["scores"] == pytest.approx(tree.scores, abs=1e-4)
    assert answer["predicted"] == tree.predicted
    assert np.array_equal(opened(answer["png"]), (network.images[3, 0] * 255).round().byte().numpy())
    assert torch.equal(pixels(answer), (network.images[3] * 255).round().byte())
    ((one, two, three),) = answer["drawings"]
    assert one != two
    named = {g.get("data-capsule") for g in ET.fromstring(three).iter("{http://www.w3.org/2000/svg}g")}
    assert {f"{node.layer}.{node.index}" for node in tree.nodes} <= named


def test_the_last_iteration_alone_is_the_same_tree(networks):
    whole, last = (answers.parse(read_parse({**SAMPLE, "last": only}, networks), networks[0]) for only in (False, True))
    assert [len(each["drawings"][0]) for each in (whole, last)] == [3, 1]
    assert last["tree"] == {**whole["tree"], "iteration": None}


def test_all_capsules_are_drawn_if_asked(networks):
    answer = answers.parse(read_parse({**SAMPLE, "tau": 0.5, "all": True}, networks), networks[0])
    assert answer["drawings"][0][-1].count("data-capsule") == 32 + 6 + 10


def test_capsules_switched_off_change_the_scores(networks):
    network = networks[0]
    answer = answers.parse(read_parse({**SAMPLE, "off": [[1, 0], [1, 2]]}, networks), network)
    with torch.no_grad():
        images = network.images[3:4]
        now, before = explain.without(network.model, [(1, 0), (1, 2)])(images)[0], network.model(images)[0]
    assert answer["scores"] == pytest.approx(now.tolist(), abs=1e-4)
    assert answer["before"]["scores"] == pytest.approx(before.tolist(), abs=1e-4)
    assert answer["scores"] != answer["before"]["scores"]


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["pgd", "fgsm", "vote", "noise"])
def test_an_attack_stays_within_its_radius_and_is_the_same_each_time(networks, attack):
    network, question = networks[0], {**SAMPLE, "attack": attack, "eps": 0.1}
    answer = answers.attack(read_attack(question, networks), network, quiet)
    assert answer == answers.attack(read_attack(question, networks), network, quiet)
    moved = pixels(answer["attacked"]).float() - pixels(answer["clean"]).float()
    assert 0 < moved.abs().max() <= 0.1 * 255 + 1
    assert answer["difference"]["largest"] == pytest.approx(0.1, abs=1e-3)
    assert answer["difference"]["magnified"] == 5
    shown = opened(answer["difference"]["png"]).astype(float) / 255 - 0.5
    assert np.allclose(shown, moved[0].numpy() / 255 * 5, atol=0.02)  # mid-grey where nothing changed
    label = answer["clean"]["predicted"]
    assert answer["attacked"]["scores"][label] <= answer["clean"]["scores"][label] + 1e-4
    assert len(answer["drawings"]) == 2
    assert answer["words"].startswith("Taken for")
    assert "nothing changed" not in answer["words"]  # which would deny the first sentence
    assert answer["label"] == network.labels[3]
    assert answer["changed"]["predicted"] == [label, answer["attacked"]["predicted"]]


def test_an_attack_can_aim_and_one_of_no_strength_changes_nothing(networks):
    network = networks[0]
    aimed = answers.attack(read_attack({**SAMPLE, "eps": 0.3, "target": 8}, networks), network, quiet)
    assert aimed["attacked"]["scores"][8] > aimed["clean"]["scores"][8]
    still = answers.attack(read_attack({**SAMPLE, "eps": 0}, networks), network, quiet)
    assert still["attacked"]["pixels"] == still["clean"]["pixels"]
    assert all(not layer["moved"] and not layer["appeared"] for layer in still["changed"]["layers"])
    assert still["words"].endswith("in both. The same capsules are active, with the same parents.")


def test_an_attack_that_gives_no_image_is_one_sentence(networks, monkeypatch):
    broken = dataclasses.replace(attack_named("pgd"), run=lambda model, images, labels, attempt: images[:, :, :3])
    monkeypatch.setitem(attack_table._attacks, "pgd", broken)
    with pytest.raises(InputError, match=r"The attack pgd gave \(1, 1, 3, 28\) for images of shape"):
        answers.attack(read_attack({**SAMPLE, "eps": 0.1}, networks), networks[0], quiet)


def test_an_attack_with_capsules_off_is_one_on_that_network(networks):
    question = {**SAMPLE, "eps": 0.1, "off": [[1, 0]]}
    answer = answers.attack(read_attack(question, networks), networks[0], quiet)
    assert answer["attacked"]["tree"]["layers"][1]["activations"][0] == 0
    whole = answers.parse(read_parse(SAMPLE, networks), networks[0])
    assert answer["before"] == {name: whole[name] for name in ("scores", "predicted")}


def test_a_class_has_one_colour_before_and_after_an_attack(networks):
    edges = re.compile(r'data-from="([^"]+)" data-to="([^"]+)" stroke="([^"]+)"')
    alone = answers.parse(read_parse(SAMPLE, networks), networks[0])["drawings"][0][-1]
    clean, attacked = answers.attack(read_attack({**SAMPLE, "eps": 0.5}, networks), networks[0], quiet)["drawings"]
    assert edges.findall(clean[-1]) == edges.findall(alone)
    for drawing in (clean[-1], attacked[-1]):
        for _, to, colour in edges.findall(drawing):
            assert not to.startswith("2.") or colour == PALETTE[int(to[2:])]


def test_ten_classes_have_ten_colours_that_are_seen_on_light_and_dark_pages():
    def light(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True)) + 0.05

    assert len({*PALETTE, class_colours(10)[None]}) == 11
    for colour in PALETTE:
        assert light("#fdfdfb") / light(colour) > 1.9
        assert light(colour) / light("#15171a") > 2.6
    assert class_colours(12)[11] == PALETTE[1]


def test_progress_counts_the_passes_and_can_stop_them(networks):
    seen = []
    answers.attack(read_attack(SAMPLE, networks), networks[0], lambda *now: seen.append(now))
    assert seen == [(k, 40) for k in range(40)]

    def stop(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answers.activated(read_activate({"layer": 1, "capsule": 0}, networks), networks[0], stop)


def test_a_generated_input_is_the_library_s(networks):
    network = networks[1]
    asked = read_activate({"network": 1, "layer": 1, "capsule": 2, "starts": 3, "steps": 4}, networks)
    answer = answers.activated(asked, network, quiet)
    made = explain.activate(network.model, "hidden 1", 2, starts=3, steps=4, best=3, noise=network.eps * 2 / 3)
    assert answer["activation"] == pytest.approx(made.activation, abs=1e-4)
    assert answer["scores"] == pytest.approx(made.scores.tolist(), abs=1e-4)
    assert [each["activation"] for each in answer["best"]] == pytest.approx(made.activations.tolist(), abs=1e-4)
    assert np.array_equal(opened(answer["best"][1]["png"]), (made.best[1, 0] * 255).round().byte().numpy())
    black = network.model.parse(torch.zeros(1, 1, 28, 28)).activations[1][0, 2]
    assert answer["empty"] == pytest.approx(black.item(), abs=1e-4)
    assert np.array_equal(opened(answer["png"]), (made.image[0] * 255).round().byte().numpy())


@pytest.fixture
def kept(networks, tmp_path):
    """A network with inputs that were generated before, of more starts than the page asks for."""
    folder = tmp_path / "run"
    gammacaps.save(networks[0].model, folder)
    numbers = {"starts": questions.STARTS + 1, "steps": questions.STEPS}
    how = usual_way("class", networks[0].radius)
    inputs_of(Run(folder), networks[0].model, "class", [2, 3], **numbers, **how)
    return dataclasses.replace(networks[0], inputs=Run(folder).inputs())


def test_an_input_that_the_run_s_folder_keeps_is_shown_and_none_is_generated(kept, monkeypatch):
    monkeypatch.setattr(answers.capsules, "activate", None)  # would fail if it were called
    answer = answers.activated(read_activate({"layer": 2, "capsule": 3}, [kept]), kept, quiet)
    assert (answer["starts"], answer["steps"]) == (questions.STARTS + 1, questions.STEPS)
    image = generated_of(kept.inputs["class"], [3], kept.capsules)[0].image
    assert np.array_equal(opened(answer["png"]), (image[0] * 255).round().byte().numpy())


@pytest.mark.parametrize(
    "asked", [{"layer": 2, "capsule": 4}, {"layer": 1, "capsule": 3}, {"layer": 2, "capsule": 3, "steps": 4}]
)
def test_one_that_it_does_not_keep_or_that_is_asked_for_otherwise_is_generated(kept, asked):
    question = read_activate({"starts": 3, "steps": 4, **asked} if "steps" in asked else asked, [kept])
    assert answers.activated_before(question, kept) is None
    other = dataclasses.replace(kept, radius=0.25)  # other noise
    assert answers.activated_before(read_activate({"layer": 2, "capsule": 3}, [other]), other) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_what_the_report_has_made_in_the_usual_way_is_shown_here_too(tmp_path, seed):
    """Of a network that was trained on clean images too, for which no radius says how much noise is right."""
    run = make_run(tmp_path / "run", train={"data": "fashion-mini", "robust": False})
    config = ReportConfig(starts=questions.STARTS, steps=questions.STEPS, seed=seed, images=20, device="cpu")
    study = open_study(run, config)
    generate(study, study.model, "class")
    (network,) = load_networks([str(run)], ExploreConfig())
    answer = answers.activated_before(read_activate({"layer": 2, "capsule": 3}, [network]), network)
    assert (answer is not None) == (seed == 0)


def test_a_capsule_is_told_by_real_images_classes_and_the_audit(networks):
    network = networks[0]
    answer = answers.capsule(network, 1, 4)
    found = explain.strongest(network.model, network.images, "hidden 1", [4])
    assert [each["sample"] for each in answer["examples"]] == found.indices[0].tolist()
    assert [each["label"] for each in answer["examples"]] == network.labels[found.indices[0]].tolist()
    served = explain.classes_served(network.model, network.images, network.labels, "hidden 1")
    assert answer["serves"]["serves"] == served.serves[4]
    assert answer["serves"]["means"] == pytest.approx(served.means[4].tolist(), abs=1e-4)
    assert answer["serves"]["classes"] == served.classes
    row = network.audit["layers"][0]["capsules"][4]
    assert (answer["audit"]["rho"], answer["audit"]["kind"]) == (row["rho"], row["kind"])
    assert answer["audit"]["eps"] == network.audit["eps"]
    assert answers.capsule(network, 0, 4)["audit"] is None  # a layer that was not audited
    assert answers.capsule(networks[1], 1, 4)["audit"] is None  # nor this network


def test_training_is_told_with_its_norm(networks):
    network = networks[0]
    assert answers.described(network)["way"] == "under attack, eps 0.1"
    ways = {"norm": "l2", "eps": 1.5}, {"robust": False}
    trained = [
        dataclasses.replace(network.about, train=dataclasses.replace(network.about.train, **way)) for way in ways
    ]
    told = [answers.described(dataclasses.replace(network, about=about))["way"] for about in trained]
    assert told == ["under attack, L2, eps 1.5", "on clean images"]


def test_a_capsule_is_told_by_its_name_and_by_the_classes_that_miss_it(networks):
    network = networks[0]
    rows = network.audit["layers"][0]["capsules"]
    assert set(network.names) == {(1, row["capsule"]) for row in rows if row["kind"] == "gamma-capsule"}
    about = dataclasses.replace(network.about, class_sets={"hidden 1": ((0,), (5, 7, 9))})
    trained = dataclasses.replace(network, audit=None, about=about, accuracies={})
    assert answers.described(trained)["names"] == {"1.0": "T-shirt", "1.1": "shoes"}
    answer = answers.capsule(trained, 1, 1)
    assert answer["name"] == "shoes"
    with torch.no_grad():
        answered = [
            each(network.images).argmax(1) for each in (network.model, explain.without(network.model, [(1, 1)]))
        ]
    for lost in answer["without"]:
        of_class = network.labels == lost["class"]
        shares = [(taken == network.labels)[of_class].double().mean().item() for taken in answered]
        assert [lost["before"], lost["without"]] == pytest.approx(shares, abs=1e-4)
    assert answers.capsule(trained, 0, 1)["without"] is None
    drawings = answers.parse(read_parse({**SAMPLE, "all": True}, [trained]), trained)
    assert "hidden 1 capsule 1 (shoes)" in drawings["drawings"][0][-1]


def test_samples_come_by_turns_or_of_one_class(networks):
    network = networks[0]
    some = answers.samples(network, None, 0, 12)
    assert [each["label"] for each in some["samples"]] == [*range(10), 0, 1]
    assert some["total"] == 500
    bags = answers.samples(network, 8, 48, 40)
    assert [each["label"] for each in bags["samples"]] == [8, 8]  # the last two of 50
    assert [network.labels[each["sample"]] for each in bags["samples"]] == [8, 8]


def test_networks_without_capsules_have_scores_and_can_be_attacked(tmp_path):
    run = make_run(tmp_path / "cnn", "cnn", filters=(2, 2), width=8)
    networks = load_networks([str(run)], ExploreConfig())
    answer = answers.parse(read_parse(SAMPLE, networks), networks[0])
    assert sum(answer["scores"]) == pytest.approx(1, abs=1e-3)
    assert "drawings" not in answer
    seen = []
    attacked = answers.attack(read_attack({**SAMPLE, "eps": 0.3}, networks), networks[0], lambda *n: seen.append(n))
    assert len(seen) == 40
    assert attacked["attacked"]["pixels"] != attacked["clean"]["pixels"]
    assert answers.described(networks[0])["layers"] == []
    for question in ({**SAMPLE, "off": [[0, 0]]}, {**SAMPLE, "attack": "vote"}):
        with pytest.raises(InputError, match="has no"):
            read_attack(question, networks)


@pytest.mark.slow
def test_matrix_capsules_and_colour_can_be_explored(tmp_path):
    shape = {"image_shape": (1, 14, 14), "classes": 10, "filters": 8, "types": (3, 3)}
    matrix = load_networks([str(make_run(tmp_path / "matrix", "matrix", **shape))], ExploreConfig())
    image = {"image": {"pixels": base64.b64encode(bytes(range(196))).decode()}}
    assert len(answers.parse(read_parse(image, matrix), matrix[0])["drawings"][0]) == 3
    assert "takes images of shape (1, 14, 14)" in matrix[0].missing  # why the images of its data set do not serve
    assert answers.capsule(matrix[0], 1, 0)["examples"] == []
    colour = load_networks([str(make_run(tmp_path / "colour", image_shape=(3, 28, 28)))], ExploreConfig())
    image = {"image": {"pixels": base64.b64encode(bytes(3 * 784)).decode()}, "eps": 0.1}
    answer = answers.attack(read_attack(image, colour), colour[0], quiet)
    assert opened(answer["attacked"]["png"]).ndim in (2, 3)
