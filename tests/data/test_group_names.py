"""Sets of classes in words."""

from itertools import combinations

import pytest

from gammacaps.data.group_names import listed, name_of_classes, name_with_classes
from gammacaps.data.named_sets import FASHION, MINI, MNIST, NAMED_SETS, SMALLNORB, NamedSet, groups_of


def named(data: NamedSet, *classes: str) -> str:
    return name_of_classes([data.class_names.index(name) for name in classes], data.class_names, data.name)


def test_a_group_has_its_name() -> None:
    assert named(FASHION, "Ankle boot", "Sandal", "Sneaker") == "shoes"
    assert named(FASHION, "Pullover", "Coat", "Shirt") == "clothes with long sleeves"
    assert named(SMALLNORB, "truck", "car") == "road vehicles"
    assert named(SMALLNORB, "human", "animal") == "living things"
    assert named(MNIST, "0", "6", "8", "9") == "digits with a loop"
    assert groups_of(MINI) == dict(FASHION.groups)


def test_a_group_with_one_class_more_or_less_and_all_but_a_group() -> None:
    assert named(FASHION, "Bag", "Ankle boot", "Sandal", "Sneaker") == "shoes and Bag"
    assert named(FASHION, "T-shirt", "Pullover", "Dress", "Coat", "Shirt") == "clothes but Trouser"
    assert named(FASHION, "T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Shirt", "Bag") == "all but shoes"
    assert named(FASHION, "T-shirt", "Pullover", "Dress", "Coat", "Shirt", "Bag") == "all but shoes and Trouser"
    sleeves = FASHION.groups["clothes with long sleeves"]
    assert named(FASHION, *FASHION.groups["shoes"], *sleeves) == "shoes and clothes with long sleeves"
    assert named(FASHION, "T-shirt", "Coat", "Bag") == "T-shirt, Coat and Bag"
    assert named(MNIST, *"123457") == "all but digits with a loop"
    assert named(SMALLNORB, "animal", "human", "airplane", "truck") == "all but car"


def test_a_short_list_of_all_classes_goes_before_a_hard_name() -> None:
    assert named(MNIST, *"23568") == "2, 3, 5, 6 and 8"  # not "all but digits on one leg and 0"
    assert named(FASHION, "T-shirt", "Trouser", "Dress", "Shirt") == "T-shirt, Trouser, Dress and Shirt"
    assert named(FASHION, "Trouser", "Pullover", "Dress", "Sandal", "Bag") == "Trouser, Pullover and 3 more"


def test_without_a_group_the_classes_are_listed_or_those_left_out() -> None:
    names = FASHION.class_names
    assert (
        name_of_classes((5, 7, 9), names)
        == name_of_classes((5, 7, 9), names, "nobody's")
        == ("Sandal, Sneaker and Ankle boot")
    )
    assert name_of_classes(range(1, 10), names) == "all but T-shirt"
    assert name_of_classes(range(2, 10), names) == "all but T-shirt and Trouser"
    assert name_of_classes((0, 1), ("a", "b", "c")) == "a and b"  # no shorter by what is left out
    assert name_of_classes((1, 3, 5, 7, 9), names, most=3) == "Trouser, Dress and 3 more"
    assert name_of_classes((1, 3, 5, 7, 9), names) == "Trouser, Dress and 3 more"
    assert name_of_classes((1, 2, 3, 7), MNIST.class_names) == "1, 2, 3 and 7"  # no shorter by counting
    assert name_of_classes((4,), names, "fashion-mnist") == "Coat"
    assert name_of_classes((), names) == "no class"
    assert name_of_classes(range(10), names) == "all classes"
    assert listed(["a"]) == "a"


def test_the_classes_stand_after_a_name_that_does_not_list_them() -> None:
    names = FASHION.class_names
    assert name_with_classes((5, 7, 9), names, MINI) == "shoes: Sandal, Sneaker and Ankle boot"
    assert name_with_classes((0, 9), names, MINI) == "T-shirt and Ankle boot"
    assert name_with_classes((3,), names, MINI) == "Dress"


@pytest.mark.parametrize("data", NAMED_SETS.values(), ids=lambda data: data.name)
def test_our_groups_are_of_the_set_s_classes_and_no_two_are_the_same(data: NamedSet) -> None:
    members = [frozenset(group) for group in data.groups.values()]
    assert len(set(members)) == len(members) > 0
    assert all(1 < len(group) < len(data.class_names) and group <= set(data.class_names) for group in members)


@pytest.mark.parametrize("data", NAMED_SETS.values(), ids=lambda data: data.name)
def test_every_name_is_short(data: NamedSet) -> None:
    count = len(data.class_names)
    for some in (set_ for k in range(1, count + 1) for set_ in combinations(range(count), k)):
        name = name_of_classes(some, data.class_names, data.name)
        assert len(name) <= 34 or name.count(",") + name.count(" and ") <= 2, name


def test_no_two_sets_that_are_told_in_full_have_one_name() -> None:
    every = [set_ for k in range(1, 11) for set_ in combinations(range(10), k)]
    names = [name_of_classes(set_, FASHION.class_names, "fashion-mnist", most=10) for set_ in every]
    assert len(set(names)) == len(every)
