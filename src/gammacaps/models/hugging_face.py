"""Networks on the Hugging Face Hub: the same config.json and model.safetensors as in a run's folder, and a card."""

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from gammacaps.errors import InputError, check_choice
from gammacaps.files import write_whole
from gammacaps.models.folder import CONFIG, WEIGHTS, load, read_config, save, write_config
from gammacaps.models.presets import ARCHITECTURES
from gammacaps.models.protocol import CapsuleModel, Model
from gammacaps.models.shipped import stored_at

CARD = "README.md"


def push_to_hub(
    model: Model | str | Path, repo: str, *, private: bool = False, token: str | None = None, message: str | None = None
) -> str:
    """Puts a network, or that of a run's folder, into the repository `owner/name`, and gives the address.

    The repository is made if it is not there. With a run goes how it was trained, not where and on which machine.
    """
    hub = _library()
    with tempfile.TemporaryDirectory() as folder:
        files = prepare(model, Path(folder) / "network", repo)
        with _in_one_sentence(repo, "pushed to"):
            api = hub.HfApi(token=token)
            address = api.create_repo(repo, private=private, exist_ok=True)
            added = [hub.CommitOperationAdd(path_in_repo=file.name, path_or_fileobj=file) for file in files]
            api.create_commit(repo, added, commit_message=message or "A network of gammacaps")
    return str(address)


def from_pretrained(
    repo: str | Path, *, revision: str | None = None, token: str | None = None, device: str | torch.device = "cpu"
) -> Model:
    """The network of the repository `owner/name`, downloaded once, or of a folder here."""
    if Path(repo).is_dir():
        return load(repo, device=device)
    hub = _library()
    with _in_one_sentence(str(repo), "loaded from"):
        paths = [
            Path(hub.hf_hub_download(str(repo), file, revision=revision, token=token)) for file in (CONFIG, WEIGHTS)
        ]
    return load(paths[0].parent, device=device)


def prepare(model: Model | str | Path, folder: Path, repo: str) -> list[Path]:
    """Writes into a new folder what is pushed."""
    if isinstance(model, str | Path):
        save(load(model), folder)
        kept = {
            name: value for name, value in read_config(stored_at(model)).items() if name not in ("machine", "launch")
        }
        # A user's own data are named by a path, of which the last part will do.
        for part, left_out in (("train", ("data_dir", "device")), ("data", ("source", "skipped"))):
            given = kept.get(part, {})
            if not isinstance(given, dict) or not isinstance(given.get("data", given.get("name", "")), str):
                raise InputError(f"{stored_at(model) / CONFIG} does not describe a run (its {part!r}): restore it.")
            facts = {name: value for name, value in given.items() if name not in left_out}
            kept[part] = facts | {name: Path(facts[name]).name for name in ("data", "name") if facts.get(name)}
        write_config(folder, kept)
    else:
        save(model, folder)
    write_whole(folder / CARD, card(read_config(folder), repo).encode())
    return sorted(folder.iterdir())


def card(config: dict[str, Any], repo: str) -> str:
    """What the repository's page says."""
    data, network = config.get("data", {}), config["model"]
    check_choice("architecture", network["architecture"], ARCHITECTURES)
    kind = "capsule" if issubclass(ARCHITECTURES[network["architecture"]][0], CapsuleModel) else "plain"
    classes = ", ".join(data.get("class_names", ()))
    trained = f"Trained on {data['name']} ({classes}).\n\n" if data.get("name") else ""
    return (
        "---\nlibrary_name: gammacaps\ntags:\n- image-classification\n- capsule-networks\n---\n\n"
        f"# {repo}\n\nA {kind} network for images of {' x '.join(map(str, network['image_shape']))} "
        f"(channels, height, width) and {network['classes']} classes.\n\n{trained}"
        f'    import gammacaps\n\n    model = gammacaps.models.from_pretrained("{repo}")\n\n'
        f"Its configuration:\n\n    {json.dumps(network)}\n"
    )


def _library() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise InputError("The Hub's library is not installed: pip install 'gammacaps[hub]'.") from None
    return huggingface_hub


@contextlib.contextmanager
def _in_one_sentence(repo: str, what: str) -> Iterator[None]:
    """Turns whatever the Hub's library raises into one sentence."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split("\n\n")[0].split()) or type(error).__name__
        raise InputError(
            f"The network could not be {what} {repo} ({reason}): check the name, written owner/name, the network and "
            "your token (hf auth login)."
        ) from error
