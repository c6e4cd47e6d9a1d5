"""Writing the page without a server: what it refuses, what it leaves alone, and how modules become one script."""

import json
import re

import pytest
from serving import make_run

import gammacaps
from gammacaps.errors import InputError
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_networks
from gammacaps.explorer.run import explore
from gammacaps.explorer.static.bundling import bundled
from gammacaps.explorer.static.folder import write_folder
from gammacaps.models import browser_form
from gammacaps.models.browser_form import why_not


@pytest.mark.slow
def test_the_command_writes_a_folder_and_again_over_its_own(runs, tmp_path, capsys):
    folder = tmp_path / "deep" / "page"
    for _ in range(2):
        explore([str(runs[0])], ExploreConfig(static=str(folder)))
    assert {path.name for path in folder.iterdir()} == {"index.html", "explorer.js", "network.js"}
    assert [path.name for path in folder.parent.iterdir()] == ["page"]  # nothing half-written is left
    assert f"Wrote {folder / 'index.html'}" in capsys.readouterr().out
    page = json.loads((folder / "network.js").read_text().removeprefix("globalThis.gammacapsPage = ").strip(" ;\n"))
    assert page["data"]["networks"][0]["facts"]["name"] == "sda"
    assert "/page/" not in (folder / "index.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["notes.txt", "index.html"])
def test_a_folder_with_other_files_is_left_alone(runs, tmp_path, name):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text("mine")
    with pytest.raises(InputError, match="is no page of gammacaps explore: choose another folder"):
        explore([str(runs[0])], ExploreConfig(static=str(folder)))
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_text() == "mine"


@pytest.mark.slow
def test_a_network_that_can_t_run_there_is_refused_in_a_sentence(tmp_path):
    networks = load_networks([str(make_run(tmp_path / "matrix", preset="matrix"))], ExploreConfig())
    with pytest.raises(InputError, match=r"matrix can't run in a page without a server: .*leave --static out"):
        write_folder(networks, tmp_path / "page")
    assert not (tmp_path / "page").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "changes", "words"),
    [
        ("cnn", {}, "another kind"),
        ("residual", {}, "residual encoder"),
        ("small", {"scale_over": "batch"}, "depends on the images beside it"),
        ("small", {}, "it has [0-9,]+ weights, and 100 are the most"),
    ],
)
def test_why_a_network_can_t_run_there(preset, changes, words, monkeypatch):
    model = gammacaps.create(preset, **changes)
    if not changes:
        monkeypatch.setattr(browser_form, "MOST_WEIGHTS", 100)
    assert re.search(words, why_not(model) or "")


@pytest.mark.slow
def test_the_presets_can_run_there():
    for preset in ("small", "deep", "paper"):
        assert why_not(gammacaps.create(preset, decoder=())) is None


def test_modules_become_one_script_in_the_order_of_their_imports():
    modules = {
        "main.js": 'import { twice as double } from "./maths.js";\nimport "./first.js";\nexport const c = double(2);',
        "maths.js": 'import {\n  one,\n} from "./first.js";\nexport function twice(x) {\n  return 2 * x * one;\n}\n',
        "first.js": "const one = 1;\nexport { one };\n",
    }
    script = bundled(modules, "main.js", shown_as="seen")
    assert [script.index(f'modules["{name}"] = ') for name in ("first.js", "maths.js", "main.js")] == sorted(
        script.index(f'modules["{name}"] = ') for name in modules
    )
    assert 'const { twice: double } = modules["maths.js"];' in script
    assert "return { c };" in script
    assert "globalThis.seen = modules;" in script


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('import { a } from "./main.js";\nexport const b = a;\n', "in a round"),
        ("export default 3;\n", "can't be put into one script: export default 3;"),
        ('import * as all from "./main.js";\n', "can't be put into one script"),
    ],
)
def test_what_can_t_become_one_script_is_said(source, words):
    with pytest.raises(ValueError, match=words):
        bundled({"main.js": 'import { b } from "./other.js";\nexport const a = b;\n', "other.js": source}, "main.js")
