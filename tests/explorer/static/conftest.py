"""For the tests of the page without a server: folders of it, its modules in a browser, and its worker to ask."""

import pytest
from browser import Watch

from gammacaps.explorer import questions
from gammacaps.explorer.static.bundling import bundled
from gammacaps.explorer.static.folder import sources, write_folder

ASK = """async ([path, body]) => {
  window.asked ??= (() => {
    const worker = new Worker(URL.createObjectURL(new Blob([gammacapsPage.worker])));
    worker.postMessage({ data: gammacapsPage.data });
    return { worker, count: 0 };
  })();
  const id = ++asked.count;
  return new Promise((done) => {
    asked.worker.addEventListener("message", ({ data }) => {
      if (data.id === id && (data.answer || data.error)) done(data.error ? data : JSON.parse(data.answer));
    });
    asked.worker.postMessage({ id, path, body });
  });
}"""


@pytest.fixture(scope="module")
def blank(browser):
    """A page on which there is nothing."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60000)
    watch = Watch(page)
    yield page
    assert watch.complaints == []
    context.close()


@pytest.fixture(scope="module")
def modules(blank):
    """A page that has all modules of the page without a server in `gammacaps`."""
    blank.add_script_tag(content=bundled(sources(), "worker.js", shown_as="gammacaps"))
    return blank


def written(networks, folder):
    """A folder with a page on which inputs are generated in no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(questions, "STARTS", 2)
        patch.setattr(questions, "STEPS", 5)
        write_folder(networks, folder)
    return folder


@pytest.fixture(scope="session")
def alone_folder(networks, tmp_path_factory):
    return written(networks[:1], tmp_path_factory.mktemp("static") / "alone")


@pytest.fixture(scope="session")
def both_folder(networks, tmp_path_factory):
    return written(networks, tmp_path_factory.mktemp("static") / "both")


@pytest.fixture(scope="module")
def alone(alone_folder):
    """The address of a page with one network, in place of the server's."""
    return f"{alone_folder.as_uri()}/index.html"


@pytest.fixture(scope="module")
def named(named_networks, tmp_path_factory):
    return f"{written(named_networks, tmp_path_factory.mktemp('static') / 'named').as_uri()}/index.html"


@pytest.fixture(scope="module")
def both(both_folder):
    return f"{both_folder.as_uri()}/index.html"


@pytest.fixture(scope="module")
def worker_of(browser):
    """Questions to the worker of a folder's page, without the page."""
    contexts = []

    def opened(folder):
        context = browser.new_context()
        contexts.append(context)
        page = context.new_page()
        page.add_script_tag(path=folder / "network.js")
        return lambda path, body=None: page.evaluate(ASK, [path, body])

    yield opened
    for context in contexts:
        context.close()
