import json

from together import together

from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.run import evaluate_run
from gammacaps.training import loop
from gammacaps.training.config import TrainConfig

TINY = ("filters=8", "primary_types=2", "hidden=[6]", "decoder=[]")


def figures(value):
    """Without what differs from one evaluation to the next."""
    if isinstance(value, dict):
        return {k: figures(v) for k, v in value.items() if k not in ("seconds", "machine")}
    return [figures(v) for v in value] if isinstance(value, list) else value


def test_any_number_of_processes_gives_the_very_same_figures_of_an_odd_number_of_images(tmp_path):
    run = tmp_path / "run"
    loop.train(TrainConfig(model=TINY, steps=25, batch=64, robust=False, device="cpu"), run)
    options = {"attacks": ("fgsm", "pgd"), "eps": (0.03,), "limit": 53, "batch": 8, "attack_steps": 3}
    one = evaluate_run(run, EvaluateConfig(**options, checks=False, device="cpu"), quiet=True)
    files = sorted((run / "evaluation").glob("*.json"))
    attacked = [json.loads(path.read_text())["predicted"] for path in files]
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
        assert [json.loads(path.read_text())["predicted"] for path in files] == attacked
        assert json.loads((run / "results.json").read_text()) == more
        assert more["machine"]["processes"] == count
