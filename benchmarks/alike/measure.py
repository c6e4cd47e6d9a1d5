"""One network trained and measured: what its row keeps."""

import base64
import dataclasses
import datetime
from pathlib import Path
from typing import Any

from benchmarks.alike.options import Options
from benchmarks.alike.planned import Planned, config_of
from benchmarks.routing import commit
from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.kinds import GAMMA
from gammacaps.auditing.run import audit_run
from gammacaps.auditing.table import totals, uncertain
from gammacaps.beyond.run import beyond_run
from gammacaps.environment import describe_machine, pick_device
from gammacaps.evaluation.by_image import CLEAN, PLACES, WORST, ByImage, bit_name
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.identity import identity
from gammacaps.evaluation.run import evaluate_run
from gammacaps.models import has_capsules
from gammacaps.runs.run import Run
from gammacaps.training.go_on import train_or_go_on

CPU_BATCH, GPU_BATCH = 250, 1000  # images a pass of the attacks
PGD = "pgd"


def made(one: Planned, options: Options) -> dict[str, Any]:
    """Its row: what was asked, figures, bits, where and when it was made. What was stopped goes on in its folder."""
    folder, config = options.runs / options.scale / one.name, config_of(one, options)
    folder.parent.mkdir(parents=True, exist_ok=True)
    train_or_go_on(config, folder, "these")
    run = Run(folder)
    last, model = run.last_metrics(), run.model()
    assert last is not None
    eps = one.setting.eps
    where: dict[str, Any] = {"data": one.setting.measured, "data_dir": options.data_dir, "device": options.device}
    batch = CPU_BATCH if pick_device(options.device).type == "cpu" else GPU_BATCH
    attacks = EvaluateConfig(
        attacks=options.attacks, eps=(eps,), limit=options.images, checks=False, batch=batch, **where
    )
    by_image = ByImage()
    results = evaluate_run(folder, attacks, by_image=by_image)
    audit = beyond = None
    if options.audited and has_capsules(model):
        audit = audited(folder, AuditConfig(strong=True, eps=(eps / 2, eps), limit=options.audited, **where))
    if options.beyond:
        beyond = beyond_run(folder, EvaluateConfig(beyond=True, eps=(eps,), limit=options.beyond, batch=batch, **where))
    tests = len(run.open_data("test", one.setting.measured, data_dir=options.data_dir).labels)
    measured = [part["seconds"] for part in (results, audit, beyond) if part is not None]
    sizes = {name: weight.numel() for name, weight in model.named_parameters()}
    return {
        **one.asked(options),
        "eps": eps,
        "weights": sum(sizes.values()),
        "weights_of_decoder": sum(size for name, size in sizes.items() if name.startswith("decoder")),
        "figures": {**of_attacks(results), "audit": audit and of_audit(audit), "beyond": beyond and of_beyond(beyond)},
        "bits": packed(by_image, tests, eps),
        "warnings": [warning.words for warning in run.warnings()],
        "seconds": {"training": last["seconds"], "measuring": round(sum(measured), 1)},
        "date": datetime.date.today().isoformat(),
        "machine": describe_machine(options.device) | {"commit": commit()},
    }


def audited(folder: Path, config: AuditConfig) -> dict[str, Any]:
    """The strong audit; one of these very weights by the same settings is not made again."""
    of = Run(folder)
    there = of.audit()
    if there is not None and there["weights"] == identity(of.model()):
        known = {name: tuple(v) if isinstance(v, list) else v for name, v in there["settings"].items()}
        if known == dataclasses.asdict(config):
            return there
    return audit_run(folder, config)


def of_attacks(results: dict[str, Any]) -> dict[str, Any]:
    """Clean, under each attack, in the worst case; T and D as the paper has them, over all images and of class 0."""
    figures = {name: results[name] for name in ("clean", "attacks", "skipped")} | {"worst": results["worst"][0]}
    T, D = results["T"], results["D"]
    if T is not None:
        figures |= {"T": T["mean"], "T_layers": T["layers"], "T0": T["by_class"][0]["mean"]}
        batches = "mean_over_batches_of_100"
        figures |= {"D": D[batches], "D0": D["by_class"][0][batches]}
    return figures


def of_audit(audit: dict[str, Any]) -> dict[str, Any]:
    """What gamma-capsules there are, and what they say together."""
    layers = audit["layers"]
    over_tau = [sum(row[GAMMA] for row in rows) for rows in zip(*(one["over_tau"] for one in layers), strict=True)]
    return {
        "images": audit["data"]["images"],
        "capsules": sum(len(layer["capsules"]) for layer in layers),
        "kinds": totals(audit),
        "tau": [row["tau"] for row in layers[0]["over_tau"]],
        "gamma": over_tau,
        "uncertain": sum(uncertain(row) for layer in layers for row in layer["capsules"]),
        **{name: audit[name] for name in ("held_out", "class_sets", "pairs_told_apart", "pattern")},
        "pairs": len(audit["class_names"]) * (len(audit["class_names"]) - 1) // 2,
    }


def of_beyond(beyond: dict[str, Any]) -> dict[str, Any]:
    """What else it withstands, without what each attack did."""
    short = {name: beyond[name] for name in ("clean", "spatial", "corruptions", "unseen", "notes")}
    norms = [{name: row[name] for name in ("norm", "eps", "accuracy", "interval", "images")} for row in beyond["norms"]]
    return {**short, "norms": norms, "calibration": beyond["calibration"]["error"]}


def packed(by_image: ByImage, tests: int, eps: float) -> dict[str, str]:
    """Which images were right clean, under PGD-40 and in the worst case, as text."""
    kept = (CLEAN, bit_name(PGD, eps), bit_name(WORST, eps))
    arrays = by_image.packed(tests)
    return {
        name: base64.b64encode(array.tobytes()).decode()
        for name, array in arrays.items()
        if name.startswith(PLACES) or name.split(":", 2)[2] in kept
    }
