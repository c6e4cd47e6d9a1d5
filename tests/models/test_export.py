import sys

import pytest
import torch
from former_small import CONVOLUTION

import gammacaps
from gammacaps.cli import main
from gammacaps.errors import InputError
from gammacaps.models.export import export, exported

pytestmark = pytest.mark.slow

NETWORKS = {
    "sda": ("small", {**CONVOLUTION, "filters": 8, "primary_types": 2, "hidden": (6,), "decoder": ()}),
    "rba": ("small", {"filters": 8, "primary_types": 2, "hidden": (), "decoder": (), "routing": "rba"}),
    "deep": (
        "deep",
        {"filters": 4, "primary_types": 2, "hidden": (6,), "activation": "silu", "image_shape": (3, 32, 24)},
    ),
    "residual": ("residual", {"filters": 4, "primary_types": 2, "hidden": (6,), "image_shape": (3, 32, 24)}),
    "matrix": (
        "matrix",
        {"filters": 4, "primary_types": 2, "types": (3, 3), "iterations": 2, "image_shape": (1, 14, 14)},
    ),
    "cnn": ("cnn", {"filters": (2, 3), "width": 8}),
}


def network(name):
    preset, changes = NETWORKS[name]
    return gammacaps.create(preset, classes=4, **changes).eval()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_program_gives_the_network_s_scores_for_any_batch(name, tmp_path):
    model = network(name)
    export(model, tmp_path / "net.pt2")
    program = torch.export.load(tmp_path / "net.pt2").module()
    for batch in (1, 5):
        images = torch.rand(batch, *model.config.image_shape)
        with torch.no_grad():
            torch.testing.assert_close(program(images), model(images), rtol=0, atol=1e-5)


def test_nothing_of_ours_is_in_the_program():
    program = exported(network("sda"))
    called = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert called
    assert all(name.startswith(("aten.", "<built-in")) for name in called)


@pytest.mark.parametrize("name", ["sda", "matrix"])
def test_an_onnx_file_gives_the_network_s_scores_in_onnx_runtime(name, tmp_path, capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = network(name)
    gammacaps.save(model, tmp_path / "run")
    main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "net.onnx")])
    assert "net.onnx" in capsys.readouterr().out
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    images = torch.rand(5, *model.config.image_shape)
    (scores,) = session.run(["scores"], {"images": images.numpy()})
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(scores), model(images), rtol=0, atol=1e-4)


def test_another_ending_and_a_missing_library_get_one_sentence(tmp_path, monkeypatch):
    model = network("cnn")
    with pytest.raises(InputError, match=r"net.pkl ends neither in .onnx nor in .pt2: choose one"):
        export(model, tmp_path / "net.pkl")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r"ONNX is not installed: pip install 'gammacaps\[onnx\]'"):
        export(model, tmp_path / "net.onnx")
    assert list(tmp_path.iterdir()) == []
