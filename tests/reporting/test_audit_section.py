"""The audit's section: its answer, its tables and its curves."""

import pytest

from gammacaps.reporting.content import Value
from gammacaps.reporting.sections.audit import shown_audit
from gammacaps.reporting.sections.hidden import kind_of


def audited(gamma: int, others: int, single: float) -> dict:
    """An audit.json of one layer with so many gamma-capsules, so many that are not robust, and a dead one."""
    kinds = ["gamma-capsule"] * gamma + ["non-robust"] * others + ["dead"]
    counts = {"gamma-capsule": gamma, "non-robust": others, "not useful": 0, "dead": 1}
    before = counts | {"gamma-capsule": gamma + others, "non-robust": 0}
    capsules = [
        {
            "capsule": k,
            "kind": kind,
            "active": 0.0 if kind == "dead" else 0.25,
            "classes": [0, 1],
            "rho": 1.5,
            "gamma": {"gamma-capsule": [1.0, 0.25], "non-robust": [1.0, -0.5], "dead": None}[kind],
            "gamma_any": {"gamma-capsule": 0.25, "non-robust": -0.5, "dead": None}[kind],
        }
        for k, kind in enumerate(kinds)
    ]
    layer = {"layer": "hidden 1", "of": len(kinds), "counts": counts, "capsules": capsules}
    layer["over_eps"] = [{"eps": 0.0, **before}, {"eps": 0.05, **before}, {"eps": 0.1, **counts}]
    layer["over_tau"] = [{"tau": 0.1, **counts}]
    tree = {"from": "hidden 1", "to": "hidden 1", "T": 0.5, "active": 9, "single_parent": single, "margin": 0.4}
    about = {"verdict": "So many are.", "class_names": ["cat", "dog"], "tau": 0.1, "eps": [0.05, 0.1]}
    about |= {"data": {"name": "pets", "images": 9}, "settings": {}}
    return {**about, "layers": [layer], "tree": [tree, tree | {"single_parent": None, "margin": None}]}


@pytest.mark.parametrize(
    ("gamma", "others", "single", "expected"),
    [(4, 0, 1.0, "pass"), (4, 0, 0.5, "warn"), (2, 2, 1.0, "warn"), (1, 2, 1.0, "fail"), (0, 0, 1.0, "fail")],
)
def test_an_audit_is_answered_by_the_definition(gamma, others, single, expected):
    assert shown_audit(audited(gamma, others, single)).verdict == expected


def test_a_network_of_which_a_part_was_audited_is_one_in_part_at_most():
    values = audited(4, 0, 1.0)
    values["tree"].append(values["tree"][0] | {"from": "primary", "to": "class"})
    shown = shown_audit(values)
    assert shown.verdict == "warn"
    assert shown.notes[0] == "The definition asks it of every capsule. Not audited: layer primary, layer class."
    some = audited(4, 0, 1.0)
    some["layers"][0]["of"] = 1152
    assert shown_audit(some).verdict == "warn"
    assert shown_audit(some).notes[0].endswith("Not audited: 1,147 of the 1,152 capsules of layer hidden 1.")


def test_chance_and_the_interval_are_shown_and_what_is_not_certain_is_named():
    values = audited(2, 1, 1.0)
    intervals = [[0.1, 0.4], [-0.1, 0.6], [-0.9, 0.1], None]
    for row, interval in zip(values["layers"][0]["capsules"], intervals, strict=True):
        row |= {"chance": 0.75, "gamma_interval": interval}
    table = shown_audit(values).tables[0]
    assert table.head[4:] == (
        "rho",
        "by chance",
        "gamma, eps 0.05",
        "gamma, eps 0.1",
        "95% interval, eps 0.1",
        "best gamma",
    )
    assert [row[1] for row in table.rows] == ["gamma-capsule", "gamma-capsule, not certain", "non-robust", "dead"]
    gamma = Value("gamma hidden 1 1", "0.25")  # which stands on the capsule's card, too
    assert table.rows[1][4:] == ("1.50", "0.75", "1.00", gamma, "-0.10 to 0.60", "0.25")
    assert table.rows[3][4:] == ("1.50", "0.75", "–", "–", "–", "–")


def test_an_audit_s_figures_stand_in_its_tables_and_curves():
    shown = shown_audit(audited(3, 1, 0.8))
    assert shown.sentence == "So many are."
    capsules, parents = shown.tables
    assert capsules.head[-3:] == ("gamma, eps 0.05", "gamma, eps 0.1", "best gamma")
    active, gamma = Value("active hidden 1 3", "25%"), Value("gamma hidden 1 3", "-0.50")
    assert capsules.rows[3] == ("3", "non-robust", active, "all classes", "1.50", "1.00", gamma, "-0.50")
    assert capsules.rows[4] == ("4", "dead", Value("active hidden 1 4", "0%"), "–", "1.50", "–", "–", "–")
    assert parents.rows == (("hidden 1 to hidden 1", "80%", "40%", "0.50"), ("hidden 1 to hidden 1", "–", "–", "0.50"))
    without_t = shown_audit(audited(3, 1, 0.8), with_t=False).tables[1]  # where an evaluation told T of its own images
    assert (without_t.head[-1], without_t.rows[0][1:]) == ("Lead over the second", ("80%", "40%"))
    lines = {series.name: series.points for series in shown.curves[0].series}
    assert lines["gamma-capsule"] == ((0.0, 0.8), (0.05, 0.8), (0.1, 0.6))
    assert set(lines) == {"gamma-capsule", "non-robust", "dead"}  # none was not useful
    assert kind_of(audited(3, 1, 0.8), "hidden 1", 3) == "non-robust"
    assert kind_of(None, "hidden 1", 3) == ""
