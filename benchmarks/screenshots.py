"""The pictures of the report and the explorer in docs/images, and how fast the explorer's slider is answered.

    python -m benchmarks.screenshots --network fashion-mnist   # report, explorer and story, of fashion-mini unless told
    python -m benchmarks.screenshots --pair demo/robust demo/standard   # two networks side by side, of `make demo`
    python -m benchmarks.screenshots --latency                 # only the times

Needs playwright and Chromium (or the browser that GAMMACAPS_BROWSER names). What is shown is chosen by the network's
own answers, so that it can be run again for other weights.
"""

import argparse
import contextlib
import io
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image

from gammacaps.explorer import answers
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import Network, load_networks
from gammacaps.explorer.questions import read_attack
from gammacaps.explorer.run import listen, served
from gammacaps.explorer.server import create_app
from gammacaps.models.shipped import stored_at
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.run import report_runs

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
MOST_BYTES = 150_000
TALLEST = 1500  # of a picture of a phone's page
TRIES = 9  # of each time
BROWSER = os.environ.get("GAMMACAPS_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
# A stroke of the slider, and when its answer is on the screen: the image, the scores and both trees. The time is taken
# in the page, at the frame after the change.
DRAG = """async (value) => {
  const slider = document.getElementById("eps"), box = document.querySelector(".network .sides");
  const changed = () => new Promise((done) => {
    const watch = new MutationObserver(() => {
      watch.disconnect();
      requestAnimationFrame(() => done(performance.now()));
    });
    watch.observe(box, { childList: true });
  });
  const coarse = changed(), start = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
  const first = await coarse, exact = changed(), let_go = performance.now();
  slider.dispatchEvent(new Event("change"));
  return [first - start, (await exact) - let_go];
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="fashion-mini")
    parser.add_argument("--pair", nargs=2, type=Path, metavar="RUN", help="two runs for the page side by side")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--latency", action="store_true", help="measure the slider, and take no pictures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if BROWSER is None:
        sys.exit("There is no Chromium: install it, or name one in GAMMACAPS_BROWSER.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        if options.latency:
            explore(options.network, lambda address, network: measure(browser, address, network))
        elif options.pair:
            picture_report(browser, report_runs(tuple(options.pair), ReportConfig()), options.out, "side-by-side")
        else:
            explore(options.network, lambda address, network: picture_explorer(browser, address, network, options.out))
            with tempfile.TemporaryDirectory() as folder:
                run = Path(shutil.copytree(stored_at(options.network), Path(folder) / options.network))
                picture_report(browser, report_runs((run,), ReportConfig()), options.out, "report")
        browser.close()


def explore(name: str, work: Any) -> None:
    """Calls `work` with the address of an explorer of this network, and the network."""
    (network,) = load_networks([name], ExploreConfig())
    with serving(network) as address:
        work(address, network)


@contextlib.contextmanager
def serving(network: Network) -> Iterator[str]:
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(served(create_app([network])))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.05)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


def telling_view(network: Network) -> str:
    """The address of a test image that is right and stays right under attack, and of a capsule that leads to it.

    A capsule with a name is better than one without.
    """
    best = ""
    for sample in range(min(60, len(network.images))):
        asked = read_attack({"image": {"sample": sample}, "eps": network.eps, "tau": network.tau}, [network])
        answer = answers.attack(asked, network, lambda done, of: None)
        held = answer["label"] == answer["clean"]["predicted"] == answer["attacked"]["predicted"]
        led = [tuple(capsule) for capsule in answer["attacked"]["why"]["capsules"]]
        named = [capsule for capsule in led if capsule in network.names]
        if held and led:
            layer, capsule = (named or led)[0]
            best = f"#sample={sample}&eps={network.eps:g}&capsule=0.{layer}.{capsule}"
            if named:
                return best
    return best or "#sample=0"


def open_page(browser: Any, address: str, viewport: dict[str, int], scheme: str) -> Any:
    page = browser.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce").new_page()
    page.set_default_timeout(300_000)
    page.goto(address)
    return page


def picture_explorer(browser: Any, address: str, network: Network, out: Path) -> None:
    view = telling_view(network)
    for name, viewport, scheme in (
        ("explorer", DESK, "light"),
        ("explorer-dark", DESK, "dark"),
        ("explorer-phone", PHONE, "light"),
    ):
        page = open_page(browser, address + view, viewport, scheme)
        for part in (".shots", ".generated img", ".strongest img", "#networks:not(:has(.busy))"):
            page.wait_for_selector(part, state="attached")
        keep(page, out / f"{name}.png", full_page=viewport == PHONE)
    for name, viewport, steps in (("story", DESK, 4), ("story-phone", PHONE, 2)):
        page = open_page(browser, address, viewport, "light")
        page.wait_for_selector("html[data-ready]")
        page.locator("#story-open").click()
        for _ in range(steps):
            page.wait_for_selector("#story:not([aria-busy])")
            page.locator("#story-next").click()
        page.wait_for_selector("#story:not([aria-busy])")
        page.wait_for_timeout(500)
        keep(page, out / f"{name}.png")


def picture_report(browser: Any, path: Path, out: Path, name: str) -> None:
    schemes = [("", DESK, "light"), ("-dark", DESK, "dark"), ("-phone", PHONE, "light")]
    for ending, viewport, scheme in schemes if name == "report" else schemes[:1]:
        page = open_page(browser, path.resolve().as_uri(), viewport, scheme)
        keep(page, out / f"{name}{ending}.png", full_page=viewport == PHONE)


def keep(page: Any, path: Path, full_page: bool = False) -> None:
    """A picture of the page in as few colours as it takes to be small."""
    image = Image.open(io.BytesIO(page.screenshot(full_page=full_page))).convert("RGB")
    image = image.crop((0, 0, image.width, min(image.height, TALLEST)))
    for colours in (256, 128, 64, 32):
        packed = io.BytesIO()
        image.quantize(colours).save(packed, "png", optimize=True)
        if packed.tell() <= MOST_BYTES:
            break
    path.write_bytes(packed.getvalue())
    print(f"{path}: {image.width} x {image.height}, {packed.tell() / 1000:.0f} KB")
    page.context.close()


def measure(browser: Any, address: str, network: Network) -> None:
    """The slider dragged to another value each time, so that no answer is one that was kept."""
    page = open_page(browser, address + "#sample=0", DESK, "light")
    page.wait_for_selector("html[data-ready]")
    page.wait_for_selector(".tree svg")
    times = [page.evaluate(DRAG, f"{0.05 + 0.01 * n:.2f}") for n in range(TRIES + 1)][1:]  # the first one warms up
    for name, values in zip(
        ("coarse, while it is dragged", "exact, once let go"), zip(*times, strict=True), strict=True
    ):
        print(
            f"{network.name}, {name}: median {statistics.median(values):.0f} ms, most {max(values):.0f} ms of {TRIES}"
        )
    print(f"Load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    page.context.close()


if __name__ == "__main__":
    main()
