"""The page from made-up records: its tables' order, and what it says when claims hold and when they do not."""

import dataclasses
import re

import numpy as np
import pytest
import torch
from made_up import as_the_paper_says, changed, record

import gammacaps
from gammacaps.errors import InputError
from gammacaps.evaluation.checks.probe import bound
from gammacaps.explain.maps import Confusion
from gammacaps.paper.claims import CLAIMS, judge_claims
from gammacaps.paper.page import SECTIONS, page, write_page
from gammacaps.paper.plan import PARTS
from gammacaps.paper.record import path_of, read_records, write_record
from gammacaps.paper.sections import features, filters, hidden, maps


@pytest.fixture
def no_pictures(monkeypatch):
    """A page of words alone, for drawing takes most of the time; two tests look at the pictures."""
    for part, drawing in ((filters, "_picture"), (maps, "_picture"), (hidden, "_picture"), (features, "grid_png")):
        monkeypatch.setattr(part, drawing, lambda *_, **__: b"")
    monkeypatch.setattr(Confusion, "png", lambda *_: b"")


def test_without_runs_nothing_is_claimed(tmp_path):
    assert all(verdict.held is None and not verdict.sentences for verdict in judge_claims({}).values())
    text = page({}, tmp_path)
    assert "### Held" not in text
    assert "### Did not hold" not in text
    assert f"0 held on every data set that they are judged on, 0 did not; {len(CLAIMS)} can't be told" in text
    for title, _ in (SECTIONS[part] for part in PARTS):
        assert re.search(rf"## {title}\n.*?Not run yet: `", text, re.DOTALL)
    assert "The bound at eps 0.5" not in text


@pytest.mark.slow
def test_tables_stand_in_the_paper_s_order_with_its_numbers_beside(tmp_path):
    other = changed("smallnorb-sda-standard-1", T=0.53)
    text = page(as_the_paper_says() | {other.name: other}, tmp_path)
    table = text[text.index("## Table 2") : text.index("smallNORB at a tenth")]
    rows = [re.split(r" *\| *", line)[1:3] for line in table.splitlines() if line.startswith("| ")][2:]
    order = ["RBA", "EM", "SDA", "SDA"]
    longer = {"fashionMNIST": ["SDA"]}
    expected = [(data, [*order, *longer.get(data, [])]) for data in ("MNIST", "fashionMNIST", "smallNORB")]
    assert rows == [[data, rule] for data, rules in expected for rule in rules]
    assert "| MNIST | SDA | 4,000 | 0 | under attack, eps 0.3 | 97.10 | 97.1 (95.9 to 98.0) | 92.40 | 92.4 (" in table
    assert "| 0.47 | 0.53 |" in text  # T of one run: paper, ours
    assert "not run yet" not in text.lower()
    assert "SDA 20.11% on MNIST under PGD" in text  # above the bound
    assert "SDA 18.72%" not in text[text.index("attacks that fell short") : text.index("**Unequal")]
    assert "copy of 48 x 48" in text
    fair = text[text.index("## The fair table") : text.index("## Networks that ship")]
    assert "| MNIST | EM | 600 | 0 | eps 0.3, 10 x 0.04, batch 64 |" in fair
    assert "| MNIST | RBA | 4,000 | 0 | eps 0.3, 10 x 0.04, batch 128, on cross-entropy |" in fair
    assert "**40.0 (" in fair
    assert "names them: noise, apgd-t." in fair
    assert "Not in the worst case" not in fair
    for picture in re.findall(r"\]\([^/)]+/([\w.-]+\.png)\)", text):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG"), picture


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_the_page_opens_with_what_held_on_which_data(tmp_path):
    other = changed("smallnorb-sda-standard-1", T=0.53)
    text = page(as_the_paper_says() | {other.name: other}, tmp_path)
    assert f"{len(CLAIMS) - 1} held on every data set that they are judged on, 1 did not." in text
    rows = dict(re.findall(r"^\| ([^|]+) \| (.+) \|$", text[: text.index("### Held")], re.MULTILINE))
    assert rows["claim"] == "MNIST | fashionMNIST | smallNORB"
    assert (
        "SDA stands clearly above both RBA and a CNN in the worst case on MNIST and fashionMNIST and smallNORB.**"
        in text
    )
    weak = {name: changed(name, worst=(0.3, 0.2, 0.0)) for name in ("mnist-sda-robust-0", "smallnorb-sda-robust-0")}
    assert "in the worst case on fashionMNIST.** Of the" in page(as_the_paper_says() | weak, tmp_path)
    short = changed("fashion-mnist-rba-standard-0", lengths=0.98)
    text_of = page(as_the_paper_says() | {short.name: short}, tmp_path)
    assert "; 1 can't be told before more is run" in text_of
    assert "| RBA certain of every class | - | can't be told | - |" in text_of
    assert rows["T near the paper's"] == "held | held | did not"
    assert rows["As robust as the paper's"] == "held | held | -"
    assert rows["20% under strong attacks"] == "held | - | -"
    assert set(rows) - {"claim", "---"} == {claim.title for claim in CLAIMS}
    told = text[text.index("### Did not hold") : text.index("## Read this beside")]
    assert re.search(
        r"^- \*\*T near the paper's\.\*\* .*:\n(  - .*\n){2}  - smallNORB \(not\): SDA 0.47 and 0.53", told, re.M
    )


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("worst", "words"),
    [(0.4, "RBA 20.0 and 40.0%"), (0.21, "RBA 20.0 and 21.0%")],
)
def test_what_cross_entropy_changes_is_told(tmp_path, worst, words):
    other = changed("fashion-mnist-rba-entropy-0", worst=(0.5, worst, 0.0))
    text = page(as_the_paper_says() | {other.name: other}, tmp_path)
    told = next(line for line in text.splitlines() if line.startswith("**The loss.**"))
    assert words in told[told.index("fashionMNIST") :]
    assert told.endswith("RBA's on fashionMNIST." if worst == 0.4 else "do not meet): none.")
    alone = {name: one for name, one in as_the_paper_says().items() if "-entropy-" not in name}
    assert "**The loss.**" not in page(alone, tmp_path)
    assert "on cross-entropy, not run yet" in page(alone, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_the_mean_deviation_of_all_capsules_stands_beside_d(tmp_path):
    found = as_the_paper_says()
    half = np.array([[0, 0], [255, 0]], dtype=np.uint8)  # one of two capsules is on in one of two images
    found["mnist-sda-standard-1"].arrays.update(map_shuffled=half, map_alone=0 * half)
    text = page(found, tmp_path)
    assert re.search(
        r"SDA by seed\): MNIST: RBA 0\.\d+ against .*, SDA 0\.000 against 0\.250; fashionMNIST: RBA ", text
    )
    assert "D of one class" not in page({}, tmp_path)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_the_fair_table_tells_which_attacks_were_left_out(tmp_path):
    words = "vote was left out: the network has no capsules, and so no votes."
    names = ("mnist-cnn-robust-0", "smallnorb-cnn-robust-0")
    cnns = {name: record(name, skipped=[words] * 3) for name in names}  # once a radius
    text = page(as_the_paper_says() | cnns, tmp_path)
    assert f"Not in the worst case: {words[:-1]} (`{names[0]}`, `{names[1]}`)." in text


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_checks_that_saw_one_class_alone_are_named(tmp_path):
    found = as_the_paper_says()
    model = gammacaps.create("small", hidden=(3,), filters=4, primary_types=1, decoder=())
    check = bound(model, torch.rand(4, 1, 28, 28), torch.zeros(4).long(), 0)
    found["smallnorb-rba-robust-0"].figures["checks"] = [dataclasses.asdict(check)]
    told = "1 of 1 checks passed (those from `attainable-at-0.5` on saw images of one class alone)"
    assert f"`smallnorb-rba-robust-0`: {told};" in page(found, tmp_path)
    assert page(found, tmp_path).count("of one class alone") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_a_worst_case_over_fewer_attacks_is_named_wherever_it_is_compared(tmp_path):
    found = as_the_paper_says()
    name = "fashion-mnist-rba-entropy-0"
    found[name].worst(0.3)["attacks"] = ["noise"]
    em = found["mnist-em-robust-0"].worst(0.3)
    em |= {"attacks": ["noise"], "correct": 0, "accuracy": 0.0}  # more attacks could lower nothing
    text = page(found, tmp_path)
    stood = "`mnist-em-robust-0` (no image of which stood anyway)"
    assert f"names them: noise, apgd-t. Without apgd-t: {stood}, `{name}`.\n" in text
    assert re.search(r"on cross-entropy, fashionMNIST: SDA 40.0%, RBA 20.0% \(which was under fewer attacks\), ", text)
    told = next(line for line in text.splitlines() if line.startswith("**The loss.**"))
    assert told.endswith(" Not over the same attacks (the fair table): RBA on fashionMNIST.")
    # Asked for, though it can't run on the network: not fewer.
    for row in (found[name].worst(0.3), em):
        row["suite"] = ["noise", "apgd-t"]
    assert "Without apgd-t" not in page(found, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_the_steps_of_pgd_are_told_where_they_were_not_all_the_same(tmp_path):
    found = as_the_paper_says()
    rba = found["smallnorb-rba-standard-0"]
    for one in rba.figures["tenth"]:
        one["step"] = 0.0005
    text = page(found, tmp_path)
    assert (
        "PGD: 40 steps of 0.001, which reach 0.04; only 40 of 0.0005, which reach 0.02: `smallnorb-rba-standard-0`."
        in text
    )
    assert "(PGD's steps of 0.003, 0.0005, 0.003; the longest reach farthest)" in text
    assert re.search(r"\| smallNORB \| SDA .* \| 0.03 \| [^|]+ \| 45.0 \([^)]+\), steps of 0.003 \| \*\*60.0 ", text)


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
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
    assert "at 0.01, 0.03 and 0.05 ours keeps 75.0, 45.0 and 35.0% (40 steps of 0.001, 0.003 and 0.005), " in text
    assert "where the paper has 20.99, 0.17 and 0.00% at ten times that." in text
    row = "| smallNORB | SDA | 4,000 | 0 | under attack, eps 0.03 | 64.58 | 75.0 (72.2 to 77.6) | 34.89 | 45.0"
    assert row in text[text.index("smallNORB at a tenth of the radii") : text.index("## Accuracy under FGSM")]
    assert "PGD-40 leaves" not in text
    del found[rba.name]
    assert "**smallNORB's radii.**" not in page(found, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_the_authors_loss_stands_beside_ours(tmp_path):
    name = "mnist-sda-robust-1"
    found = as_the_paper_says() | {name: changed(name, pgd=(0.98, 0.93, 0.1), authors=(0.98, 0.94, 0.05))}
    text = page(found, tmp_path)
    assert "leaves clearly fewer images right than on ours in 1 of 3 cases, and clearly more in 0 " in text
    assert f"The largest difference: `{name}` at eps 0.5 keeps 5.0% on theirs and 10.0% on ours." in text
    theirs = text[text.index("the loss of the authors' code") : text.index("smallNORB at a tenth of the radii")]
    assert "(not measured: `mnist-sda-robust-0`, " in theirs
    (row,) = [line for line in theirs.splitlines() if line.startswith("| MNIST")]
    assert "| SDA | 4,000 | 1 | under attack, eps 0.3 | 97.10 | 98.0 (96.9 to 98.7) | 92.40 | 94.0 (" in row
    assert "| 20.11 | 5.0 (" in row


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
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
    with pytest.raises(InputError, match=r"holds no figures of a run that this version knows .*: delete it"):
        read_records(tmp_path)


@pytest.mark.parametrize("broken", [b"", b"PK\x03\x04 half a file", b"nothing of the kind", None])
def test_broken_arrays_are_one_sentence(tmp_path, broken):
    name = "mnist-sda-robust-0"
    one = record(name)
    write_record(path_of(tmp_path, name), one.figures, one.arrays)
    beside = tmp_path / f"{name}.npz"
    beside.unlink() if broken is None else beside.write_bytes(broken)
    with pytest.raises(InputError, match=rf"{name}.npz is missing or broken: delete {name}.json beside it"):
        read_records(tmp_path)
