import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from together import together

from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.run import evaluate_run
from gammacaps.models import shipped
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.train import train

pytestmark = pytest.mark.slow

TINY = ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[]")


def figures(value):
    """Without what differs from one evaluation to the next."""
    if isinstance(value, dict):
        return {k: figures(v) for k, v in value.items() if k not in ("seconds", "machine")}
    return [figures(v) for v in value] if isinstance(value, list) else value


@pytest.mark.usefixtures("one_thread")  # as in the processes, so that all sums are in the same order
def test_any_number_of_processes_gives_the_very_same_figures_of_an_odd_number_of_images(tmp_path):
    run = tmp_path / "run"
    train(TrainConfig(model=TINY, steps=25, batch=64, robust=False, device="cpu"), run)
    options = {"attacks": ("fgsm", "pgd"), "eps": (0.03,), "limit": 53, "batch": 8, "attack_steps": 3}
    one = evaluate_run(run, EvaluateConfig(**options, checks=False, device="cpu"), quiet=True)
    files = sorted((run / "evaluation").glob("*.json"))
    attacked = [json.loads(path.read_text())["kept"]["predicted"] for path in files]
    assert len(files) == 2
    right = {row["attack"]: row["correct"] for row in one["attacks"]}
    assert 0 < right["pgd"] < one["clean"]["correct"] < 53
    arguments = ["--attacks", "fgsm", "pgd", "--eps", 0.03, "--limit", 53, "--batch", 8, "--attack-steps", 3]
    for count in (2, 3):
        for path in files:
            path.unlink()
        done = together(count, "evaluate", run, *arguments, "--no-checks", "--device", "cpu", "--json")
        assert done.returncode == 0, done.stderr
        more = json.loads(done.stdout)
        assert figures(more) == figures(one)  # T and D and the confusion matrix too
        assert [json.loads(path.read_text())["kept"]["predicted"] for path in files] == attacked
        assert json.loads((run / "results.json").read_text()) == more
        assert more["machine"]["processes"] == count


def test_the_folders_are_the_first_process_s_alone(tmp_path):
    for rank in ("0", "1"):  # each on a machine of its own
        (tmp_path / rank).mkdir()
    train(TrainConfig(model=TINY, steps=1, batch=8, robust=False, device="cpu"), tmp_path / "0" / "mine")
    arguments = ["--attacks", "fgsm", "--limit", 8, "--batch", 4, "--no-checks", "--device", "cpu", "--json"]
    done = together(2, "evaluate", "mine", "fashion-mini", *arguments, "--sweep", 0, 0.1, apart=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [row["run"] for row in json.loads(done.stdout)] == ["mine", "runs/fashion-mini-own"]
    assert done.stderr.count("Copied the network fashion-mini") == 1
    assert (tmp_path / "0" / "mine" / "sweep.png").exists()
    assert (tmp_path / "0" / "runs" / "fashion-mini-own" / "results.json").exists()
    assert list((tmp_path / "1").iterdir()) == []
    none = together(2, "evaluate", "nowhere", apart=tmp_path)
    assert none.returncode == 2
    assert none.stderr.count("There is no run folder 'nowhere'") == 1
    assert "Traceback" not in none.stderr  # of the second process, to which that must be said
    assert list((tmp_path / "1").iterdir()) == []


def test_two_that_copy_a_shipped_network_at_once_both_have_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    both, write = threading.Barrier(2, timeout=60), shipped.write_whole

    def wait_and_write(path, content):
        both.wait()  # until the other has seen that there is no folder yet
        write(path, content)

    def copied(name):
        with shipped.run_folder(name) as folder:
            return folder

    monkeypatch.setattr(shipped, "write_whole", wait_and_write)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(copied, ["fashion-mini"] * 2))
    assert found == [shipped.RUNS / "fashion-mini"] * 2
    assert capsys.readouterr().err.count("Copied the network") == 1
    assert [path.name for path in shipped.RUNS.iterdir()] == ["fashion-mini"]
