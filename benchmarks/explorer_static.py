"""How long the page without a server takes: `python -m benchmarks.explorer_static fashion-mini`, with Node installed.

Runs the page's own worker in Node, whose JavaScript engine is Chromium's, and tells the processor's time of each
answer beside the time that passed: on a busy machine only the first says how fast the page is.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.networks import load_networks
from gammacaps.explorer.static.folder import NETWORK, write_folder

TIMES = """
const run = (words) => new Function(words)();
run(require("fs").readFileSync(process.argv[1], "utf8"));
const { worker, data } = gammacapsPage;
let told, id = 0;
globalThis.self = { postMessage: (said) => (said.answer || said.error) && told(said) };
run(worker);
self.onmessage({ data: { data } });
const ask = (path, body) => new Promise((done) => {
  told = done;
  self.onmessage({ data: { id: ++id, path, body } });
});
const tau = data.networks[0].facts.tau;
async function time(name, path, count, more) {
  const asked = (k) => ({ network: 0, image: { sample: k }, tau, all: false, off: [], layer: 1, capsule: k, ...more });
  await ask(path, asked(0)); // warm
  const cpu = process.cpuUsage(), start = performance.now();
  for (let k = 1; k <= count; k++) {
    const { error } = await ask(path, asked(k));
    if (error) throw new Error(error);
  }
  const { user, system } = process.cpuUsage(cpu), passed = performance.now() - start;
  const figure = (ms) => `${(ms / count / 1000).toFixed(3).padStart(8)} s`;
  console.log(`${name.padEnd(32)} ${figure((user + system) / 1000)} of a processor, ${figure(passed)} passed`);
}
(async () => {
  await time("tree, by all iterations", "/api/parse", 20, {});
  await time("coarse attack", "/api/attack", 5, { attack: "pgd", eps: 0.1, coarse: true });
  await time("PGD, 40 steps, with its trees", "/api/attack", 5, { attack: "pgd", eps: 0.1 });
  await time("the smallest eps that breaks", "/api/breaking", 3, { attack: "pgd" });
  await time("an input generated", "/api/activate", 1, {});
  process.exit();
})();
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", nargs="?", default="fashion-mini", help="a run's folder or a shipped network's name")
    network = parser.parse_args().network
    node = shutil.which("node")
    if node is None:
        sys.exit("There is no node on this machine: install Node 20 or newer.")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "page"
        write_folder(load_networks([network], ExploreConfig()), folder)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{network}: {size / 1e6:.1f} MB", flush=True)
        subprocess.run([node, "-e", TIMES, str(folder / NETWORK)], check=True)


if __name__ == "__main__":
    main()
