"""The page from made-up records: its tables' order, and what it says when claims hold and when they do not."""

import re

import numpy as np
import pytest
from made_up import as_the_paper_says, record, share

from gammacaps.errors import InputError
from gammacaps.paper.claims import CLAIMS, bound, claims, together
from gammacaps.paper.page import SECTIONS, page, write_page
from gammacaps.paper.plan import PARTS
from gammacaps.paper.record import Record, path_of, read_records, write_record


def by_words(found):
    return {check.__name__: check(found) for check in CLAIMS}


def with_changed(run, changes):
    """The paper's figures, but for those of one run."""
    found = as_the_paper_says()
    attacked = {"pgd": (0.98, 0.93, 0.1)} if "robust" in run or "long" in run else {}
    changed = record(run, **{**attacked, **changes})
    found[run] = Record(changed.figures, changed.arrays, found[run].earlier)
    return found


def test_every_claim_holds_where_the_figures_are_the_paper_s_but_the_impossible_one():
    judged = by_words(as_the_paper_says())
    assert {name for name, claim in judged.items() if claim.held is not True} == {"strong_attacks"}
    assert "possible is 10.0% at most" in judged["strong_attacks"].found
    assert "0.99 to 0.99 long after 3,000 steps on clean images" in judged["confident"].found
    assert "0.80 to 0.80 after 15,000 steps under attack; 10 of 10" in judged["confident"].found
    assert "MNIST: 0.02 / 0.30 / 0.50 for RBA / EM / SDA" in judged["tree"].found


@pytest.mark.parametrize(
    ("claim", "run", "changes", "words"),
    [
        ("near_paper", "mnist-sda-standard-0", {"T": 0.54}, r"MNIST \(not\): SDA 0.54 \(0.48\), RBA 0.02 \(0.02\)"),
        ("tree", "smallnorb-em-standard-0", {"T": 0.6}, r"smallNORB \(not\): 0.02 / 0.60 / 0.50"),
        ("follows_input", "mnist-sda-standard-1", {"D0": 0.36}, r"MNIST \(not\): .* and 0.36 within class 0, 0.40"),
        ("follows_input", "mnist-sda-standard-0", {"D0": 0.0, "D": 0.001}, r"MNIST \(not\): 0.00 within class 0, 0.00"),
        ("rivals_do_not_follow", "mnist-rba-standard-0", {"D": 0.4, "D0": 0.2}, r"MNIST \(not\): RBA \+0.20"),
        ("similar_accuracy", "mnist-rba-standard-0", {"clean": 0.95}, "RBA 95.0%, SDA 90.0%"),
        (
            "more_robust",
            "mnist-rba-standard-0",
            {"pgd": (0.7, 0.6, 0)},
            r"MNIST \(not\): 93.0% against 60.0% and 0.0%, after 4,000, 3,000 and",
        ),
        ("more_robust", "smallnorb-sda-robust-0", {"pgd": (0.1, 0.05, 0)}, r"smallNORB \(not\): 5.0% against 0.0%"),
        (
            "reaches_paper",
            "mnist-sda-robust-0",
            {"pgd": (0.98, 0.8, 0)},
            r"MNIST eps 0.3 \(not\): 80.0%, at most 82.4% \(paper 92.40%\), after 4,000",
        ),
        ("fgsm_weaker", "mnist-sda-robust-1", {"fgsm": (0.1, 0.95, 0.2)}, "at eps 0.1: 10.0% under FGSM"),
        ("exclusive", "mnist-cnn-robust-0", {"worst": (0.3, 0.41, 0.0)}, "SDA 40.0%, RBA 20.0%, CNN 41.0%"),
        ("shirt", "fashion-mnist-sda-long-0", {"shirts": 0.01}, "0.0% of them are right after 5,000 steps, 1.0%"),
        ("shirt", "fashion-mnist-sda-long-0", {"shirts": 0.05}, "5.0% after 15,000"),
        ("sneakers", "fashion-mnist-sda-long-0", {"nothing": []}, "after 15,000 steps: .* none of the above"),
        ("confident", "fashion-mnist-rba-standard-0", {"lengths": 0.98}, "RBA's are 0.98 to 0.98 long after 3,000"),
        ("confident", "fashion-mnist-sda-long-0", {"lengths": [0.1] * 9 + [0.99]}, "9 of 10 of SDA's are shorter"),
        (
            "concentrated",
            "fashion-mnist-sda-standard-0",
            {"tenth": 0.9},
            "60.0% after 15,000 steps under attack, 90.0% after 3,000 steps on clean images",
        ),
    ],
)
def test_a_claim_falls_by_the_figures_alone(claim, run, changes, words):
    judged = by_words(with_changed(run, changes))[claim]
    assert judged.held is False
    assert re.search(words, judged.found)


@pytest.mark.parametrize(
    ("claim", "run", "changes", "words"),
    [
        ("reaches_paper", "mnist-sda-robust-0", {"pgd": (0.98, 0.92, 0.1)}, r"92.0%, at most 93.5% \(paper 92.40%\)"),
        ("shirt", "fashion-mnist-sda-long-0", {"shirts": 0.06}, "6.0% after 15,000"),
        ("confident", "fashion-mnist-rba-standard-0", {"lengths": 0.986}, "0.99 to 0.99 long"),
        ("strong_attacks", "mnist-sda-robust-0", {"worst": (0.6, 0.4, 0.2)}, "measured is 20.0% of them"),
    ],
)
def test_a_claim_holds_up_to_the_threshold_that_it_names(claim, run, changes, words):
    judged = by_words(with_changed(run, changes))[claim]
    assert judged.held is True
    assert re.search(words, judged.found)


@pytest.mark.parametrize(("early", "held"), [(0.0, True), (0.01, False)])
def test_shirts_are_none_early_only_below_the_threshold(early, held):
    found = as_the_paper_says()
    last = found["fashion-mnist-sda-long-0"]
    before = record(last.name, steps=5000, shirts=early)
    judged = by_words(found | {last.name: Record(last.figures, last.arrays, (before,))})["shirt"]
    assert judged.held is held
    assert f"{early:.1%} of them are right after 5,000 steps, 50.0% after 15,000" in judged.found


def test_a_claim_s_sentence_names_its_thresholds():
    said = {name: claim.said for name, claim in by_words({}).items()}
    assert "here: fewer than 1%" in said["shirt"]
    assert "here: more than 5%" in said["shirt"]
    assert "at least 0.99 to two decimals" in said["confident"]
    assert "at least 20% in the worst case" in said["strong_attacks"]
    assert "more than twice as often as either, and by 5 points" in said["more_robust"]
    assert "95% interval of the longest training does not end below" in said["reaches_paper"]


def test_what_is_possible_is_of_the_images_that_were_attacked():
    """The strong attacks are on fewer images than the table, in other shares."""
    uneven = record("mnist-sda-robust-0", counts=[1135, *[985] * 9])
    told = by_words(as_the_paper_says() | {uneven.name: uneven})["strong_attacks"]
    assert told.held is False
    assert "possible is 10.0% at most, the share of the most frequent class among the 1,000 images" in told.found
    assert bound(uneven.classes) == pytest.approx(0.1135)


def test_without_runs_nothing_is_claimed(tmp_path):
    assert all(claim.held is None and not claim.found for claim in claims({}))
    text = page({}, tmp_path)
    assert "## What held" not in text
    assert "## What did not hold" not in text
    for title, _ in (SECTIONS[part] for part in PARTS):
        assert re.search(rf"## {title}\n.*?Not run yet: `", text, re.DOTALL)
    assert "The bound at eps 0.5" not in text


def test_tables_stand_in_the_paper_s_order_with_its_numbers_beside(tmp_path):
    text = page(as_the_paper_says(), tmp_path)
    table = text[text.index("## Table 2") : text.index("smallNORB at a tenth")]
    rows = [re.split(r" *\| *", line)[1:3] for line in table.splitlines() if line.startswith("| ")][2:]
    order = ["RBA", "EM", "SDA", "SDA"]
    longer = {"fashionMNIST": ["SDA"]}
    expected = [(data, [*order, *longer.get(data, [])]) for data in ("MNIST", "fashionMNIST", "smallNORB")]
    assert rows == [[data, rule] for data, rules in expected for rule in rules]
    assert "| MNIST | SDA | 4,000 | 0 | under attack, eps 0.3 | 97.10 | 98.0 (96.9 to 98.7) | 92.40 | 93.0 (" in table
    assert "| 0.48 | 0.50 |" in text  # T: paper, ours
    assert "not run yet" not in text.lower()
    assert "SDA 20.11% on MNIST under PGD" in text  # above the bound
    assert "SDA 18.72%" not in text[text.index("attacks that fell short") : text.index("**Unequal")]
    assert "copy of 48 x 48" in text
    fair = text[text.index("## The fair table") : text.index("## Better networks")]
    assert "| MNIST | EM | 600 | 0 | eps 0.3, 10 x 0.04, batch 64 |" in fair
    assert "**40.0 (" in fair
    assert "names them: noise, apgd-t." in fair
    assert "Not in the worst case" not in fair
    for picture in re.findall(r"\]\([^/)]+/([\w.-]+\.png)\)", text):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG"), picture


def test_the_mean_deviation_of_all_capsules_stands_beside_d(tmp_path):
    found = as_the_paper_says()
    half = np.array([[0, 0], [255, 0]], dtype=np.uint8)  # one of two capsules is on in one of two images
    found["mnist-sda-standard-1"].arrays.update(map_shuffled=half, map_alone=0 * half)
    text = page(found, tmp_path)
    assert re.search(r"by seed: MNIST 0\.\d\d against 0\.\d\d and 0\.00 against 0\.25; fashionMNIST ", text)
    assert "D of one class" not in page({}, tmp_path)


def test_the_same_figures_give_the_same_page(tmp_path):
    folder = tmp_path / "reproduction"
    for name, one in as_the_paper_says().items():
        if name not in PARTS["features"]:
            continue
        write_record(path_of(folder, name), {k: v for k, v in one.figures.items() if k != "format"}, one.arrays)
        for before in one.earlier:
            write_record(path_of(folder, name, before.steps), before.figures, before.arrays)
    assert write_page(folder) == tmp_path / "reproduction.md"
    first = {p.name: p.read_bytes() for p in [*folder.iterdir(), tmp_path / "reproduction.md"]}
    write_page(folder)
    assert first == {p.name: p.read_bytes() for p in [*folder.iterdir(), tmp_path / "reproduction.md"]}
    assert read_records(folder)["fashion-mnist-sda-long-0"].earlier[0].steps == 5000
    with pytest.raises(InputError, match="holds figures of the whole reproduction"):
        write_page(folder, quick=True)


def test_the_fair_table_tells_which_attacks_were_left_out(tmp_path):
    words = "vote was left out: the network has no capsules, and so no votes."
    names = ("mnist-cnn-robust-0", "smallnorb-cnn-robust-0")
    cnns = {name: record(name, skipped=[words] * 3) for name in names}  # once a radius
    text = page(as_the_paper_says() | cnns, tmp_path)
    assert f"Not in the worst case: {words[:-1]} (`{names[0]}`, `{names[1]}`)." in text


def test_smallnorb_is_told_in_pixels_and_in_a_tenth(tmp_path):
    """The paper's figures do not fit its radii; where a tenth of them was measured, it stands beside."""
    found = as_the_paper_says()
    rba = record("smallnorb-rba-standard-0", pgd=(0.001, 0.0, 0.0))
    tenth = rba.figures.pop("tenth")
    text = page(found | {rba.name: rba}, tmp_path)
    assert "keeps 20.99% under PGD at eps 0.1 in the paper, and 0.1% here." in text
    assert "about a tenth in pixels" not in text
    rba.figures["tenth"] = tenth
    text = page(found | {rba.name: rba}, tmp_path)
    assert "at 0.01, 0.03 and 0.05 ours keeps 0.1, 0.0 and 0.0%, where the paper has 20.99, 0.17 and 0.00%" in text
    row = "| smallNORB | SDA | 4,000 | 0 | under attack, eps 0.03 | 64.58 | 98.0 (96.9 to 98.7) | 34.89 | 93.0"
    assert row in text[text.index("smallNORB at a tenth of the radii") : text.index("## Accuracy under FGSM")]
    assert "PGD-40 leaves" not in text
    del found[rba.name]
    assert "**smallNORB's radii.**" not in page(found, tmp_path)


def test_the_authors_loss_stands_beside_ours(tmp_path):
    found = as_the_paper_says()
    name = "mnist-sda-robust-1"
    rows = [{"attack": "pgd", "eps": e, **share(x)} for e, x in ((0.1, 0.98), (0.3, 0.94), (0.5, 0.05))]
    found[name] = record(name, pgd=(0.98, 0.93, 0.1))
    found[name].figures["authors"] = rows
    text = page(found, tmp_path)
    assert "leaves more images right than on ours in 1 of 3 cases" in text
    assert "under Table 2) and fewer in 1. " in text
    ends = [
        f"`{name}` at eps {e} keeps {x}% on theirs and {y}% on ours"
        for e, x, y in ((0.5, 5.0, 10.0), (0.3, 94.0, 93.0))
    ]
    assert f"The two ends: {'; '.join(ends)}." in text
    theirs = text[text.index("the loss of the authors' code, of") : text.index("smallNORB at a tenth of the radii")]
    assert [line for line in theirs.splitlines() if "paper |" not in line and "| MNIST | SDA | 4,000 | 1 |" in line]
    assert "| MNIST | SDA | 4,000 | 0 |" not in theirs


def test_one_data_set_is_enough_against_a_claim(tmp_path):
    found = as_the_paper_says()
    lower = record("mnist-sda-robust-0", worst=(0.6, 0.1, 0.0), pgd=(0.98, 0.8, 0.1))
    del found["smallnorb-sda-robust-0"]
    judged = by_words(found)
    assert judged["exclusive"].held is None
    assert "smallNORB: not run yet" in judged["exclusive"].found
    judged = by_words(found | {lower.name: lower})
    assert judged["exclusive"].held is False
    assert judged["reaches_paper"].held is False
    assert together([True, None]) is None
    assert together([None, False]) is False
    assert together([True, True]) is True


def test_what_was_not_learned_and_failed_checks_are_told(tmp_path):
    found = as_the_paper_says()
    name = "fashion-mnist-sda-robust-0"
    found[name] = record(name, shirts=0.04)
    found[name].figures["checks"] = [{"check": "planted", "verdict": "fail", "meaning": "PGD finds 17 of 32."}]
    text = page(found, tmp_path)
    assert f"`{name}` (Shirt 4%)." in text
    assert f"`{name}`: 0 of 1 checks passed (not: PGD finds 17 of 32)" in text


def test_each_folder_has_its_own_page(tmp_path):
    assert write_page(tmp_path / "v1.0") == tmp_path / "v1.0.md"
    assert write_page(tmp_path / "v1.1") == tmp_path / "v1.1.md"
    assert "[v1.0/](v1.0)" in (tmp_path / "v1.0.md").read_text()


def test_figures_of_another_kind_are_refused(tmp_path):
    (tmp_path / "mnist-sda-robust-0.json").write_text("{}")
    with pytest.raises(InputError, match="holds no figures of a run that this version knows: delete it"):
        read_records(tmp_path)


def test_the_bound_is_the_most_frequent_class():
    assert bound(record("mnist-sda-robust-0").classes) == 0.1
    assert bound([3, 1]) == 0.75
