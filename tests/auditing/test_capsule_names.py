"""What hidden capsules are called."""

from gammacaps.auditing.capsule_names import capsule_names
from gammacaps.data.named_sets import FASHION

LAYERS = ("primary", "hidden 1", "hidden 2", "class")
GIVEN = {"hidden 1": ((5, 7, 9), (0,), (1, 3)), "hidden 2": ((2, 4), ())}


def test_names_are_those_of_the_sets_given_in_training_until_there_is_an_audit():
    names = capsule_names(LAYERS, None, GIVEN, FASHION.class_names, "fashion-mini")
    assert names == {(1, 0): "shoes", (1, 1): "T-shirt", (1, 2): "long clothes", (2, 0): "warm clothes"}
    assert capsule_names(LAYERS, None, {}, FASHION.class_names, "fashion-mini") == {}


def test_a_name_that_comes_again_in_its_layer_has_the_capsule_s_number():
    given = {"hidden 1": ((5, 7, 9), (0,), (9, 7, 5)), "hidden 2": ((0,), (5, 7, 9))}
    names = capsule_names(LAYERS, None, given, FASHION.class_names, "fashion-mini")
    assert [names[1, i] for i in range(3)] == ["shoes (0)", "T-shirt", "shoes (2)"]
    assert [names[2, i] for i in range(2)] == ["T-shirt", "shoes"]  # but once in theirs


def test_an_audit_names_gamma_capsules_and_takes_the_names_of_others():
    rows = [
        {"capsule": 0, "kind": "gamma-capsule", "classes": [7, 9]},
        {"capsule": 1, "kind": "non-robust", "classes": [0]},
    ]
    audit = {"layers": [{"layer": "hidden 1", "capsules": rows}]}
    names = capsule_names(LAYERS, audit, GIVEN, FASHION.class_names, None)
    # Capsule 2 was not audited, nor was the second layer.
    assert names == {(1, 0): "Sneaker and Ankle boot", (1, 2): "Trouser and Dress", (2, 0): "Pullover and Coat"}
