// The worker: what would be the server. It answers the same questions, by messages.
//
// In: {data} once, then {id, path, body} for a question and {id, leave: true} where nobody waits for it any more.
// Out: {id, done, of} while it is worked on, then {id, answer} (JSON) or {id, error}.

import { assembled } from "./assembled.js";
import { Network, unpacked } from "./network.js";
import { FastProducts, PlainProducts } from "./products.js";

class Left extends Error {}

const code = assembled();
const waiting = new Set(); // questions that somebody waits for
let networks = [];

// Lets messages in between two passes of a network: a quick question need not wait for a long answer.
const channel = new MessageChannel();
const turns = [];
channel.port1.onmessage = () => turns.shift()();
const pause = () => new Promise((go) => {
  turns.push(go);
  channel.port2.postMessage(null);
});

function open({ networks: all, images }) {
  const shared = unpacked(images);
  networks = all.map((data) => new Network(data, shared, WebAssembly.validate(code) ? new FastProducts(code) : new PlainProducts()));
}

const numbers = (query) => Object.fromEntries([...new URLSearchParams(query)].map(([name, value]) => [name, Number(value)]));

function answer(path, body, tick) {
  const [name, query] = path.split("?"), asked = body ?? numbers(query), network = networks[asked.network ?? 0];
  const routes = {
    "/api/model": () => ({ networks: networks.map(({ facts }) => facts) }),
    "/api/samples": () => network.samples(asked),
    "/api/capsule": () => network.capsule(asked),
    "/api/patches": () => network.patches,
    "/api/parse": () => network.parse(asked),
    "/api/attack": () => network.attack(asked, tick),
    "/api/breaking": () => network.breaking(asked, tick),
    "/api/activate": () => network.activate(asked, tick),
  };
  return routes[name]();
}

self.onmessage = async ({ data: { data, id, path, body, leave } }) => {
  if (data) return open(data);
  if (leave) return waiting.delete(id);
  waiting.add(id);
  let told = 0;
  const tick = async (done, of) => {
    await pause();
    if (!waiting.has(id)) throw new Left();
    if (performance.now() - told < 50) return;
    told = performance.now();
    self.postMessage({ id, done, of });
  };
  try {
    await pause(); // what has become stale in the meantime is not begun
    if (!waiting.has(id)) return;
    self.postMessage({ id, answer: JSON.stringify(await answer(path, body, tick)) });
  } catch (error) {
    if (!(error instanceof Left)) self.postMessage({ id, error: `The page could not work this out (${error.message}): reload it.` });
  } finally {
    waiting.delete(id);
  }
};
