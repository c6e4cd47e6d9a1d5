"""The verdict of the first screen: of the network first, of the measurement second."""

import re
from dataclasses import replace

import pytest

from gammacaps.attacks import suites
from gammacaps.reporting.accuracies import worst_name
from gammacaps.reporting.headline import gamma_capsules, hardest, headline


def attacked(attack, eps, accuracy, steps=None):
    shown = {"attack": attack, "eps": eps, "accuracy": accuracy, "steps": steps, "restarts": 1}
    return shown | {"loss": None, "interval": [0.1, 0.9], "seconds": 1.0}


def words(sentence):
    return "".join(part if isinstance(part, str) else part.text for part in sentence)


def check(name, verdict):
    return {"check": name, "verdict": verdict, "number": None, "meaning": "So it is."}


def test_the_verdict_names_the_worst_case_of_a_strong_evaluation(study):
    attacks = [
        attacked("pgd", 0.1, 0.59, 40),
        attacked("apgd-ce", 0.1, 0.6),
        attacked("apgd-t", 0.1, 0.57),
        attacked("fab-t", 0.1, 0.56),
        attacked("auto-square", 0.1, 0.56),
        attacked("pgd", 0.3, 0.1, 40),
    ]
    clean = study.results["clean"] | {"accuracy": 0.9, "images": 500}
    worst = [{"eps": 0.1, "accuracy": 0.56, "interval": [0.4, 0.7]}]
    results = study.results | {"clean": clean, "attacks": attacks, "worst": worst}
    network, measurement = map(words, headline(replace(study, results=results, audit=None)))
    assert network == (
        "It holds under attack: 90.0% of the test images are right, and 56.0% still are after an attack that may "
        "change each pixel by 0.1 (10.0% by 0.3)."
    )
    assert measurement == (
        "The measurement: the worst case of 2 attacks on 500 test images, 95% interval 40.0 to 70.0; whether to "
        "believe it was not checked."
    )
    # Without a worst case AutoAttack's parts are one, whose figure is the last one's.
    _, measurement = headline(replace(study, results=results | {"worst": []}, audit=None))
    assert words(measurement).startswith("The measurement: AutoAttack on 500 test images, 95% interval 10.0 to 90.0;")
    # Where nothing was measured at the training's radius, the largest counts.
    elsewhere = replace(study, about=replace(study.about, train=replace(study.about.train, eps=0.2)))
    assert hardest(elsewhere, results)["eps"] == 0.3
    assert hardest(study, results | {"attacks": [], "worst": []}) is None


@pytest.mark.parametrize(
    ("clean", "under_attack", "word"),
    [
        (0.9, 0.45, "It holds under attack: "),
        (0.9, 0.44, "It gives way under attack: "),
        (0.9, 0.1, "It breaks under attack: "),
        (0.9, 0.0, "It breaks under attack: "),
        (0.1, 0.1, "It has not learned its task: "),
    ],
)
def test_the_network_is_judged_before_the_measurement(study, clean, under_attack, word):
    checks = [check("repeats", "pass")] * 15
    results = study.results | {"attacks": [attacked("pgd", 0.1, under_attack, 40)], "worst": [], "checks": checks}
    results["clean"] = study.results["clean"] | {"accuracy": clean}
    network, measurement = map(words, headline(replace(study, results=results)))
    assert network.startswith(word)
    assert measurement.endswith("none of 15 checks found a reason to doubt it.")


def test_a_measurement_that_is_not_to_be_trusted_says_so(study):
    row = attacked("pgd", 0.1, 0.5, 40)
    rest = [check("learned", "pass"), check("neighbours", "skip")]
    for verdict, said in (
        ("fail", "1 of 2 checks fails (The same image twice), so do not trust it."),
        ("warn", "1 of 2 checks calls for care (The same image twice)."),
    ):
        clean = study.results["clean"] | {"accuracy": 0.9}
        checks = [check("repeats", verdict), *rest]
        results = study.results | {"clean": clean, "attacks": [row], "worst": [], "checks": checks}
        network, measurement = map(words, headline(replace(study, results=results)))
        assert measurement.endswith(said)
        held = "Whether it holds under attack is not known: " if verdict == "fail" else "It holds under attack: "
        assert network.startswith(held)


def test_what_was_not_measured_says_how(study):
    (unknown,) = headline(replace(study, results=None, audit=None))
    assert f"run gammacaps evaluate {study.run}" in words(unknown)
    _, capsules = headline(replace(study, results=None))
    kinds = r"(are gamma-capsules|is a gamma-capsule)(, \d+ of them not certain)?"
    said = rf"By the audit, (\d+ of \d+ active hidden capsules {kinds}|none of .*)\."
    assert re.fullmatch(said, words(capsules))
    clean_alone = study.results | {"attacks": [], "worst": []}
    network, measurement = map(words, headline(replace(study, results=clean_alone, audit=None)))
    assert network.endswith("under attack it was not measured.")
    assert measurement.startswith("Measured on 20 test images")


def test_gamma_capsules_that_are_not_certain_are_counted_on_the_first_screen():
    rows = [{"kind": "gamma-capsule", "gamma_interval": [low, 0.4]} for low in (0.2, -0.1)]
    rows.append({"kind": "non-robust", "gamma_interval": [-0.2, 0.1]})
    counts = {"gamma-capsule": 2, "non-robust": 1, "not useful": 0, "dead": 0}
    audit = {"layers": [{"layer": "hidden 1", "counts": counts, "capsules": rows}]}
    said = "2 of 3 active hidden capsules are gamma-capsules, 1 of them not certain"
    assert words(gamma_capsules(audit)) == said
    rows[1]["gamma_interval"] = [0.1, 0.4]
    assert words(gamma_capsules(audit)) == said.partition(",")[0]


def test_the_worst_case_is_of_all_attacks_only_where_all_were_run():
    rows = [{"attack": name, "eps": 0.1} for name in suites()["strong"]]
    assert worst_name({"attacks": rows}) == "Worst case of all attacks"
    some = [row | {"steps": None, "restarts": 1, "seconds": 1.0} for row in rows if row["attack"] in ("pgd", "fgsm")]
    assert worst_name({"attacks": some}) == "Worst case of 2 attacks"
    assert worst_name({"attacks": some[:1]}) == "Worst case of one attack"
