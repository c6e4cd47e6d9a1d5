"""The user's own modules: plugins that the environment names."""

import sys

import pytest

from gammacaps.errors import InputError
from gammacaps.imports import load_plugins


def test_plugins_are_found_in_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "first_plugin.py").write_text("import sys\nsys.modules['seen'] = sys\n")
    (tmp_path / "second_plugin.py").write_text("import sys\nsys.modules['seen too'] = sys\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GAMMACAPS_PLUGINS", "first_plugin, second_plugin,")
    try:
        load_plugins()
        assert {"seen", "seen too"} <= set(sys.modules)
        assert str(tmp_path) not in sys.path
    finally:
        for name in ("seen", "seen too", "first_plugin", "second_plugin"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize("text", ["raise AttributeError('no')", "import nowhere_at_all", "raise SystemExit(0)", "1 +"])
def test_a_broken_plugin_is_one_sentence(text, tmp_path, monkeypatch):
    (tmp_path / "broken_plugin.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GAMMACAPS_PLUGINS", "broken_plugin")
    with pytest.raises(InputError, match=r"The plugin broken_plugin \(named by GAMMACAPS_PLUGINS\) can't be imported"):
        load_plugins()


def test_without_plugins_nothing_is_imported(monkeypatch):
    monkeypatch.delenv("GAMMACAPS_PLUGINS", raising=False)
    load_plugins()
