import os
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.slow

# In a process of its own: the shape checks that tests put around every function can't be compiled.
SCRIPT = """
import copy, sys, torch, gammacaps

device, backend = sys.argv[1:]
torch.manual_seed(0)
small = {"filters": 8, "primary_types": 2, "types": (3, 4), "iterations": 2, "image_shape": (1, 16, 16)}
model = gammacaps.create("matrix", **small).to(device)
compiled = copy.deepcopy(model)
assert compiled.compile_routing(backend)
images = torch.rand(3, 1, 16, 16, device=device, requires_grad=True)
for learning in (False, True, False, True):  # an attack, a step, an attack, a step
    gradients = []
    for network in (model, compiled):
        network.requires_grad_(learning)
        wanted = [images, *(network.parameters() if learning else ())]
        gradients.append(torch.autograd.grad(network(images).square().sum(), wanted))
    for plain, fast in zip(*gradients, strict=True):
        # EM divides by variances: what two compilers round differently shows in the third digit.
        assert (fast - plain).norm() <= 1e-2 * plain.norm() + 1e-5
print("the same gradients")
"""
NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


@pytest.mark.parametrize(("device", "backend"), [("cpu", "aot_eager"), pytest.param("cuda", "inductor", marks=NO_GPU)])
def test_compiled_weights_go_on_learning_after_they_were_frozen(device, backend):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, device, backend],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"GAMMACAPS_PLAIN": "1"},  # on a GPU kernels would be used
    )
    assert "the same gradients" in done.stdout, done.stderr
