"""Routing by compiled code against the formulas in float64, and the plain backend's own error as the measure."""

import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from gammacaps.errors import InputError
from gammacaps.ops import route, rule_named
from gammacaps.ops.routing.backend import Routing, Settings
from gammacaps.ops.routing.native import build as native
from gammacaps.ops.routing.native.backend import Native, filled_up, why_not_native
from gammacaps.ops.routing.rules import route_by_formula
from gammacaps.ops.routing.written_out import WrittenOut

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CC", "cc")) is None or platform.system() != "Linux", reason="there is no C compiler"
)

SIZES = [  # B I J d D iterations
    (57, 40, 16, 8, 8, 3),  # two registers of parents, the small preset's sizes
    (5, 24, 32, 8, 8, 3),  # four, the paper's
    (6, 33, 10, 8, 16, 3),  # parents that do not fill their registers
    (2, 9, 3, 5, 7, 3),  # odd everywhere: no block of eight anywhere
    (3, 17, 41, 3, 5, 2),  # more registers than are unrolled
    (1, 1, 2, 1, 1, 1),  # the least there is
    (4, 11, 8, 2, 9, 5),  # one register, many iterations
]


def example(size, *, zeros=True):
    """Poses of which one is zero, weights of which one is zero, and gradients of all outputs."""
    B, I, J, d, D, _ = size
    generator = torch.Generator().manual_seed(0)
    poses, weight, bias = (torch.randn(*s, generator=generator) for s in ((B, I, d), (I, J, d, D), (J, D)))
    poses, weight, bias = 0.5 * poses, 0.4 * weight, 0.1 * bias
    if zeros and I > 1:
        poses[0, 0] = 0
        weight[1, 1] = 0
    grads = torch.randn(B, J, D, generator=generator), torch.randn(B, I, J, generator=generator)
    return (poses, weight, bias), grads


def results(function, inputs, grads, dtype):
    """Poses, couplings (B I J) and the gradients of poses, weight and bias, as float64."""
    leaves = [t.to(dtype).requires_grad_() for t in inputs]
    v, c = function(*leaves)
    loss = (v * grads[0].to(dtype)).sum() + (c * grads[1].to(dtype)).sum()
    return [t.detach().double() for t in (v, c, *torch.autograd.grad(loss, leaves))]


@pytest.mark.parametrize("rule", ["sda", "rba"])
@pytest.mark.parametrize("size", SIZES)
def test_values_and_all_gradients_are_the_reference_s(rule, size):
    inputs, grads = example(size)
    how = Settings(rule_named(rule), size[-1])

    def formulas(*leaves):
        return route_by_formula(rule_named(rule), *leaves, size[-1])

    right = results(formulas, inputs, grads, torch.float64)
    theirs = results(lambda *leaves: Routing.apply(*leaves, WrittenOut(how)), inputs, grads, torch.float32)
    ours = results(lambda *leaves: Routing.apply(*leaves, Native(how)), inputs, grads, torch.float32)
    for name, a, b, c in zip(("v", "c", "poses", "weight", "bias"), ours, theirs, right, strict=True):
        # Errors as wholes: the largest of few numbers is luck. A rounding is allowed where the plain one has none.
        assert (a - c).norm() <= 2 * (b - c).norm() + 2e-7 * c.norm(), name


@pytest.mark.parametrize("rule", ["sda", "rba"])
def test_route_takes_it_and_gives_what_the_plain_backend_gives(rule, monkeypatch):
    (poses, weight, bias), _ = example((4, 30, 10, 8, 16, 3))
    used = []
    real = native.library().forward
    monkeypatch.setattr(native.library(), "forward", lambda *given: used.append(1) or real(*given))
    ours, plain = (route(poses, weight, bias, rule=rule, backend=b) for b in ("auto", "torch"))
    assert used == [1]
    assert torch.allclose(ours.poses, plain.poses, atol=1e-6)
    assert torch.allclose(ours.couplings, plain.couplings, atol=1e-5)
    assert route(poses, weight, bias, couplings=False).couplings is None
    monkeypatch.setenv("GAMMACAPS_PLAIN", "1")
    used.clear()
    route(poses, weight, bias, rule=rule)
    route(poses.double(), weight.double(), bias.double(), rule=rule)
    assert used == []


def test_weights_in_any_memory_order_no_bias_and_half_precision():
    (poses, weight, _), _ = example((3, 12, 6, 4, 8, 3))
    stored = weight.transpose(1, 2).contiguous().transpose(1, 2)  # as RoutedCapsules has them
    one, other = route(poses, weight), route(poses.transpose(0, 1).contiguous().transpose(0, 1), stored)
    assert one.poses.equal(other.poses)
    assert one.couplings.sum(-1).sub(1).abs().max() < 1e-6
    half = route(poses.bfloat16(), weight.bfloat16())
    assert half.poses.dtype == torch.bfloat16
    assert torch.allclose(half.poses.float(), one.poses, atol=2e-2)


def test_one_image_s_result_does_not_change_with_its_batch_or_the_threads():
    (poses, weight, bias), _ = example((9, 50, 16, 8, 8, 3))
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        together = route(poses, weight, bias)
        torch.set_num_threads(1)
        alone = route(poses[4:5], weight, bias)
    finally:
        torch.set_num_threads(threads)
    assert together.poses[4].equal(alone.poses[0])
    assert together.couplings[4].equal(alone.couplings[0])


def test_a_graph_can_be_used_twice_and_differentiated_twice():
    (poses, weight, bias), _ = example((2, 7, 4, 3, 5, 3), zeros=False)
    leaf = poses.requires_grad_()
    turned = leaf.transpose(0, 1).contiguous().transpose(0, 1)  # in another order in memory
    v = route(turned, weight, bias).poses
    first, second = (torch.autograd.grad(v.sum(), leaf, retain_graph=True)[0] for _ in range(2))
    assert first.equal(second)
    (again,) = torch.autograd.grad(v.sum(), leaf, create_graph=True)
    assert torch.allclose(again, first, atol=1e-4)
    (curvature,) = torch.autograd.grad(again.square().sum(), leaf)
    assert curvature.isfinite().all()
    assert curvature.abs().max() > 0


def test_zeros_and_what_is_not_a_number():
    weight = torch.randn(5, 3, 4, 6)
    poses = torch.zeros(2, 5, 4, requires_grad=True)
    for rule in ("sda", "rba"):
        v, c = route(poses, weight, rule=rule)
        (grad,) = torch.autograd.grad(v.sum() + c.square().sum(), poses)
        assert v.isfinite().all()
        assert c.isfinite().all()
        assert grad.isfinite().all()
    broken = torch.randn(2, 5, 4)
    broken[1, 2, 0] = torch.nan
    v, c = route(broken, weight)
    assert v[0].isfinite().all()  # a NaN stays with its image, and shows
    assert v[1].isnan().all()


def test_where_it_can_t_run(monkeypatch):
    poses, weight, how = torch.rand(1, 2, 3), torch.rand(2, 2, 3, 4), Settings(rule_named("sda"), 3)
    assert why_not_native(how, torch.float32, weight, poses) is None
    assert "float32 on a CPU" in why_not_native(how, torch.float64, weight, poses)
    assert "over the batch" in why_not_native(Settings(rule_named("sda"), 3, "batch"), torch.float32, weight, poses)
    assert "at most 4096 parents" in why_not_native(how, torch.float32, torch.rand(2, 5000, 3, 4), poses)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(poses)
    assert "plain tensors" in why_not_native(how, torch.float32, weight, fake)
    empty = route(torch.rand(2, 3, 0), torch.rand(3, 8, 0, 4))
    assert (empty.poses == 0).all()
    monkeypatch.setattr("gammacaps.ops.routing.native.backend.library", lambda: None)
    assert "Linux and GCC" in why_not_native(how, torch.float32, weight, poses)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(InputError, match="Triton kernels can't be used"):
        route(torch.rand(1, 2, 3), torch.rand(2, 2, 3, 4), backend="triton")


@pytest.fixture
def quick_compiler(tmp_path):
    """A compiler that takes no time, since it hands out what the real one made before; each call is a line in a log."""
    compiler, log = tmp_path / "cc", tmp_path / "log"
    hands_out = (
        f'cat >/dev/null; for word; do [ "$before" = -o ] && cp "{native._built()}" "$word"; before="$word"; done'
    )
    compiler.write_text(f"#!/bin/sh\necho called >>{log}; {hands_out}\n")
    compiler.chmod(0o755)
    log.touch()
    return compiler, log


def test_it_is_compiled_once_and_a_compiler_that_fails_is_no_disaster(tmp_path, monkeypatch, quick_compiler):
    compiler, log = quick_compiler
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setattr(native, "_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(native, "FLAGS", (*native.FLAGS, "-O0"))  # compiled in a moment
    first = native._built()
    assert native._built() == first
    assert log.read_text() == "called\n"
    assert [p.name for p in first.parent.iterdir()] == [first.name]
    first.parent.chmod(0o777)  # somebody else could have put it there
    assert native.library.__wrapped__() is None
    first.parent.chmod(0o700)
    assert native.library.__wrapped__() is not None
    for compiler in ("false", "no-such-compiler"):
        monkeypatch.setenv("CC", compiler)
        assert native.library.__wrapped__() is None


DAMAGED = """
import sys
from pathlib import Path
from gammacaps.ops.routing.native import build as native

path, log = native._built(), Path(sys.argv[1])
whole = path.read_bytes()
flipped = bytearray(whole)
flipped[len(whole) // 2] ^= 1
elsewhere = path.with_name(path.name.replace(path.stem[-64:], 64 * "0"))  # named for another content
for what, name, content in (
    ("truncated", path, whole[: len(whole) // 2]),
    ("emptied", path, b""),
    ("bit flipped", path, bytes(flipped)),
    ("longer", path, whole + b"0"),
    ("another name", elsewhere, whole),
):
    print(what, flush=True)
    path.unlink()
    name.write_bytes(content)
    log.write_text("")
    assert native.library.__wrapped__().forward, what
    assert log.read_text() == "called\\n", what
    assert path.read_bytes() == whole, what
print("all made again")
"""


@pytest.mark.slow
def test_a_damaged_library_is_made_again_and_used(tmp_path, quick_compiler):
    compiler, log = quick_compiler
    # In a process of its own: loading such a file ends it.
    setting = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "CC": str(compiler)}
    done = subprocess.run([sys.executable, "-c", DAMAGED, str(log)], env=setting, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all made again\n")


def test_many_may_make_it_at_once(tmp_path, monkeypatch, quick_compiler):
    monkeypatch.setenv("CC", str(quick_compiler[0]))
    monkeypatch.setattr(native, "_cache", lambda: tmp_path / "cache")
    whole = native._built().read_bytes()
    native._built().write_bytes(whole[:1000])

    def made(_):
        return native._built().read_bytes()  # whole at once for each, whatever the others are about to do

    with ThreadPoolExecutor(8) as pool:
        assert all(content == whole for content in pool.map(made, range(24)))
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [native._built().name]


def test_without_a_place_to_keep_it_the_plain_way_is_taken(tmp_path, monkeypatch, quick_compiler):
    monkeypatch.setenv("CC", str(quick_compiler[0]))
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr(native, "_cache", lambda: tmp_path / "cache")
    assert native.library.__wrapped__() is None
    monkeypatch.setattr(native, "_cache", lambda: tmp_path / "other")

    def full(path, content):
        raise InputError(f"{path} can't be written (No space left on device): free space or choose another place.")

    monkeypatch.setattr(native, "write_whole", full)
    assert native.library.__wrapped__() is None
    monkeypatch.setattr("gammacaps.ops.routing.native.backend.library", lambda: None)
    assert route(torch.rand(1, 2, 3), torch.rand(2, 2, 3, 4)).poses.isfinite().all()


def test_rows_are_filled_up_to_registers():
    one = filled_up(2)
    assert one in (4, 8, 16)  # as the processor has them
    assert [filled_up(J) for J in (one, one + 1, 2 * one, 16, 33)] == [one, 2 * one, 2 * one, 16, 32 + one]
