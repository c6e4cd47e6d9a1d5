"""The table of routing rules: one's own rule from outside, on every backend and on the command line."""

import dataclasses
import inspect
import os
import subprocess
import sys
import warnings

import pytest
import torch

from gammacaps import create
from gammacaps.errors import InputError
from gammacaps.nn import RoutedCapsules
from gammacaps.nn.vector import why_no_kernels
from gammacaps.ops import RoutingRule, add_rule, route, rule_named, rule_names, squash
from gammacaps.ops.routing import choice, rules
from gammacaps.ops.routing.backend import Settings
from gammacaps.ops.routing.native.backend import Native
from gammacaps.ops.routing.written_out import WrittenOut


def halved_votes(votes, poses):
    return 0.5 * votes


def pulled(votes, parents, before):
    return 0.3 * before + (votes * parents.unsqueeze(1)).tanh().sum(-1)


MINE = RoutingRule("mine", title="a rule for tests", logits=pulled, bound_votes=halved_votes)


@pytest.fixture(autouse=True)
def _own_table(monkeypatch):
    """What a test adds is gone after it, and what was said may be said again."""
    monkeypatch.setattr(rules, "_rules", dict(rules._rules))
    monkeypatch.setattr(choice, "_said", set())


@pytest.fixture
def mine():
    add_rule(MINE)
    return "mine"


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def example(dtype=torch.float64):
    shapes = ((2, 5, 3), (5, 4, 3, 6), (4, 6))
    return [(0.7 * torch.randn(*shape, dtype=torch.float64)).to(dtype).requires_grad_() for shape in shapes]


def by_hand(poses, weight, bias, iterations=3):
    """The same sums, sample by sample and capsule by capsule."""
    v = c = None
    u = torch.stack([torch.stack([p @ w for p, w in zip(one, weight, strict=True)]) for one in poses]) * 0.5  # B I J D
    b = torch.zeros(u.shape[:3], dtype=u.dtype)
    for _ in range(iterations):
        c = b.exp() / b.exp().sum(-1, keepdim=True)
        v = squash((c.unsqueeze(-1) * u).sum(1) + bias)
        b = 0.3 * b + torch.tanh(u * v[:, None]).sum(-1)
    return v, c


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_a_rule_from_outside_gives_what_its_formula_says_with_its_gradients(mine, backend):
    tensors = example()
    ours, right = route(*tensors, rule=mine, backend=backend), by_hand(*tensors)
    weights = [torch.randn_like(t) for t in right]
    for mine_, true in zip(ours, right, strict=True):
        torch.testing.assert_close(mine_, true)
    grads = [
        torch.autograd.grad(sum((t * w).sum() for t, w in zip(outs, weights, strict=True)), tensors)
        for outs in (ours, right)
    ]
    for grad, true in zip(*grads, strict=True):
        torch.testing.assert_close(grad, true)
    narrow = [t.detach().float() for t in tensors]
    torch.testing.assert_close(route(*narrow, rule=mine, backend=backend).poses, right[0].float(), atol=1e-6, rtol=1e-5)
    half = route(*(t.detach().bfloat16() for t in tensors), rule=mine, backend=backend, couplings=False)
    assert half.poses.dtype == torch.bfloat16
    assert half.couplings is None


@pytest.mark.usefixtures("quiet")
def test_its_gradient_passes_gradcheck_and_it_can_be_transformed(mine):
    tensors = example()
    assert torch.autograd.gradcheck(lambda *t: tuple(route(*t, rule=mine)), tensors, fast_mode=True)
    poses, weight, bias = (t.detach() for t in tensors)
    one_by_one = torch.vmap(lambda p: route(p[None], weight, bias, rule=mine).poses[0])(poses)
    torch.testing.assert_close(one_by_one, route(poses, weight, bias, rule=mine).poses)


@pytest.mark.parametrize(
    ("backend", "dtype", "lacking"),
    [
        ("auto", torch.float32, choice.NATIVE),
        ("torch", torch.float32, choice.WRITTEN_OUT),
        ("auto", torch.float64, choice.WRITTEN_OUT),
    ],
)
def test_that_the_formula_is_used_is_said_once_a_rule_and_backend(mine, backend, dtype, lacking, monkeypatch):
    monkeypatch.setattr(choice, "why_not_native", lambda s, wide, w, p: None if wide == torch.float32 else "another")
    tensors = example(dtype)
    with pytest.warns(UserWarning, match=f"The rule 'mine' has no {lacking}: its formula is used instead"):
        route(*tensors, rule=mine, backend=backend)
    route(*tensors, rule=mine, backend=backend)  # a second warning would be an error


def test_a_rule_without_compiled_code_has_its_written_out_gradient(monkeypatch):
    monkeypatch.setattr(choice, "why_not_native", lambda *_: None)
    tensors = example(torch.float32)
    for backends in ((choice.NATIVE, choice.WRITTEN_OUT), (choice.WRITTEN_OUT,)):
        rule = dataclasses.replace(rule_named("rba"), backends=frozenset(backends))
        chosen = choice.choose("auto", Settings(rule, 3), torch.float32, *tensors[:2], transforming=False)
        assert chosen == backends[0]


def test_kernels_that_are_asked_for_a_rule_they_lack_say_so(mine):
    with pytest.raises(InputError, match=r"can't be used: they do not have the rule 'mine'. Use backend='auto'"):
        route(*example(torch.float32), rule=mine, backend="triton")
    assert why_no_kernels(RoutedCapsules(3, 2, 4, 4, rule=mine)) == "they do not have the rule 'mine'"


def test_no_backend_takes_another_rule_for_one_of_its_own(mine):
    from gammacaps.ops.routing.kernels.layers import kernels_for

    settings, poses, weight = Settings(rule_named(mine), 3), torch.rand(2, 4, 2), torch.rand(4, 3, 2, 4)
    kernels = kernels_for(2, (3, 5, 2, 4), Settings(rule_named("sda"), 3), poses.device, learning=True)
    assert kernels.layer.sda
    for make in (Native, WrittenOut):
        with pytest.raises(InputError, match="Only sda and rba have code of their own, not the rule 'mine'"):
            make(settings)
    for shape, learning in (((4, 3, 2, 4), False), ((3, 5, 2, 4), True), ((2, 3, 17, 9), True)):
        with pytest.raises(InputError, match="not the rule 'mine'"):
            kernels_for(2, shape, settings, poses.device, learning=learning).forward(
                poses, weight, None, couplings=False, keep=False
            )


@pytest.mark.parametrize(
    "ask",
    [
        lambda: route(*example(), rule="sdaa"),
        lambda: RoutedCapsules(3, 2, 4, 4, rule="sdaa"),
        lambda: create("small", routing="sdaa"),
        lambda: rule_named("sdaa"),
    ],
)
def test_an_unknown_name_is_an_error_everywhere(ask):
    words = r"no rule 'sdaa' \(did you mean 'sda'\?\): use one of sda, rba, or import .* name it in GAMMACAPS_PLUGINS"
    with pytest.raises(InputError, match=words):
        ask()


def test_what_a_rule_must_be():
    with pytest.raises(InputError, match="'sda' is a rule of gammacaps itself"):
        add_rule(RoutingRule("sda", title="another", logits=pulled))
    with pytest.raises(InputError, match="lower-case letters"):
        add_rule(RoutingRule("My Rule", title="with a space", logits=pulled))
    with pytest.raises(InputError, match=r"A rule is a RoutingRule\(...\), not 'mine'"):
        inspect.unwrap(add_rule)("mine")  # without the tests' check of types
    with pytest.raises(InputError, match="No faster backend has the rule 'mine' of yours: leave its `backends` empty"):
        add_rule(dataclasses.replace(MINE, backends=frozenset({"nonsense"})))
    add_rule(RoutingRule("flat", title="too few axes", logits=lambda votes, parents, before: before.sum(-1)))
    add_rule(RoutingRule("mine", title="first", logits=pulled))
    add_rule(MINE)  # as a cell of a notebook that is run again
    assert rule_named("mine").title == "a rule for tests"
    assert rule_names() == ("sda", "rba", "flat", "mine")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(
            InputError, match=r"logits of the rule 'flat' must have the shape \(2, 5, 4\), not \(2, 5\)"
        ):
            route(*example(), rule="flat")


PLUGIN = """
import torch
from gammacaps.ops import RoutingRule, add_rule


def cosine(votes, parents, before):
    return before + torch.cosine_similarity(votes, parents.unsqueeze(1), dim=-1)


add_rule(RoutingRule("mine", title="agreement of directions", logits=cosine))
"""

SESSION = """
import sys
from gammacaps.cli import main

main("train --preset small --data fashion-mini --steps 2 --batch 8 --routing mine --no-robust --device cpu".split()
     + ["--out", "run", "--model", "filters=8", "primary_types=2", "hidden=[4]", "decoder=[]"])
main("evaluate run --limit 4 --attacks fgsm --eps 0.1 --no-checks --device cpu".split())
main("report run --starts 1 --steps 2 --images 20 --trees 1 --device cpu".split())
"""


@pytest.mark.slow
def test_a_rule_of_a_plugin_works_on_the_command_line(tmp_path):
    (tmp_path / "my_rules.py").write_text(PLUGIN)
    plain = {name: value for name, value in os.environ.items() if name != "GAMMACAPS_PLUGINS"}

    def run(*command, **more):
        return subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env={**plain, **more}, capture_output=True, text=True
        )

    done = run("-c", SESSION, GAMMACAPS_PLUGINS="my_rules")
    assert done.returncode == 0, done.stderr
    assert "The rule 'mine' has no" in done.stderr
    assert "agreement of directions, 3 iterations" in (tmp_path / "run" / "report.html").read_text()
    for command, where in (("evaluate run", "run/config.json: "), ("train --out other --routing mine", "")):
        without = run("-m", "gammacaps", *command.split())
        assert without.returncode == 2
        assert without.stderr.startswith(f"gammacaps: {where}There is no rule 'mine': use one of sda, rba, or import")
        assert without.stderr.count("\n") == 1
    assert not (tmp_path / "other").exists()
