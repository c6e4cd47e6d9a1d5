// What is on show, and its address: everything stands after the #, so that it is never sent to a server.

export const CHANGES = ["turn", "right", "down", "blur", "dark"]; // what may be done to the image
const FURTHEST = { turn: 180, right: 64, down: 64, blur: 8, dark: 1 }; // as the server has it; also to the other side
const ONE_SIDED = ["blur", "dark"];

const START = {
  image: null, // {sample: 3} or {pixels: Uint8Array}
  eps: 0, attack: "pgd", target: null, side: "attacked", // the tree on top
  change: Object.fromEntries(CHANGES.map((name) => [name, 0])),
  why: false, // show only what leads to the answer
  tau: 0.1, all: false, step: null, // routing's iteration, null: the last
  capsule: null, // [network, layer, capsule]
  off: [], // the same
};

export const state = structuredClone(START);

// Where nothing else is said a capsule is active above this: what the audit calls active, if there was one.
export function startAt(tau) {
  START.tau = state.tau = tau;
}

const join = (triple) => triple.join(".");
const triple = (words) => words.split(".").map(Number);
const isWhole = (words, high, low = 0) => /^\d{1,9}$/.test(words) && Number(words) >= low && Number(words) <= high;
const within = (words, low, high) => /^[\d.]+(e-?\d+)?$/.test(words) && Number(words) >= low && Number(words) <= high;
const isCapsule = (words, layers, above = 0) => {
  const [network, layer, capsule] = /^\d{1,9}(\.\d{1,9}){2}$/.test(words) ? triple(words) : [];
  return layer < layers[network]?.length - above && capsule < layers[network][layer].capsules;
};

async function throughStream(bytes, stream) {
  const done = new Response(new Blob([bytes]).stream().pipeThrough(stream));
  return new Uint8Array(await done.arrayBuffer());
}

export function toBase64(bytes) {
  let letters = "";
  for (let k = 0; k < bytes.length; k += 8192) letters += String.fromCharCode(...bytes.subarray(k, k + 8192));
  return btoa(letters);
}

export const fromBase64 = (words) => Uint8Array.from(atob(words), (letter) => letter.charCodeAt(0));

async function packed(pixels) {
  const bytes = await throughStream(pixels, new CompressionStream("deflate-raw"));
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// No image packs to more than it is, so a longer address is none of ours.
async function unpacked(words, bytes) {
  if (words.length > 1.4 * bytes + 100) throw new Error("too long");
  const letters = words.replaceAll("-", "+").replaceAll("_", "/");
  return throughStream(fromBase64(letters), new DecompressionStream("deflate-raw"));
}

export async function address() {
  const parts = new URLSearchParams();
  if (state.image?.pixels) parts.set("pixels", await packed(state.image.pixels));
  else if (state.image) parts.set("sample", state.image.sample);
  for (const name of CHANGES) if (state.change[name] !== 0) parts.set(name, state.change[name]);
  if (state.why) parts.set("why", 1);
  if (state.eps > 0) parts.set("eps", state.eps);
  if (state.attack !== START.attack) parts.set("attack", state.attack);
  if (state.target !== null) parts.set("target", state.target);
  if (state.side !== START.side) parts.set("side", state.side);
  if (state.tau !== START.tau) parts.set("tau", state.tau);
  if (state.all) parts.set("all", 1);
  if (state.step !== null) parts.set("step", state.step);
  if (state.capsule) parts.set("capsule", join(state.capsule));
  if (state.off.length) parts.set("off", state.off.map(join).join(","));
  return `#${parts}`;
}

let writing = Promise.resolve();

// Puts the state into the address; as a step that the back button undoes, or in place of the present one.
export function remember(step = true) {
  writing = writing.then(async () => {
    const now = await address();
    if (now === location.hash) return;
    if (step) history.pushState(null, "", now);
    else history.replaceState(null, "", now);
  });
  return writing;
}

const MOST_OFF = 64; // capsules of a network, as the server has it
const LEAST_EPS = 1e-6;

// Takes the state from the address. Gives words for what can't be read there, which is left out.
export async function recall(networks) {
  const [first] = networks;
  const bytes = first.image_shape.reduce((product, side) => product * side, 1);
  const layers = networks.map((each) => each.layers);
  const iterations = Math.max(...networks.map((each) => each.iterations ?? 1));
  const attacks = networks.flatMap((each) => each.attacks.map((attack) => attack.name));
  const found = structuredClone(START);
  const parts = new URLSearchParams(location.hash.slice(1));
  // Each takes its part's words and says whether they made sense.
  const readers = {
    sample: (words) => isWhole(words, first.images - 1) && (found.image ??= { sample: Number(words) }),
    pixels: async (words) => {
      const pixels = await unpacked(words, bytes).catch(() => null);
      return pixels?.length === bytes && (found.image = { pixels });
    },
    eps: (words) => within(words, 0, 1) && (Number(words) === 0 || Number(words) >= LEAST_EPS) && ((found.eps = Number(words)), true),
    attack: (words) => attacks.includes(words) && (found.attack = words),
    target: (words) => isWhole(words, first.class_names.length - 1) && ((found.target = Number(words)), true),
    side: (words) => ["clean", "attacked"].includes(words) && (found.side = words),
    tau: (words) => within(words, 0, 0.99) && ((found.tau = Number(words)), true),
    ...Object.fromEntries(CHANGES.map((name) => [name, (words) => {
      const size = words.replace(/^-/, "");
      const known = within(size, 0, FURTHEST[name]) && (size === words || !ONE_SIDED.includes(name));
      return known && ((found.change[name] = Number(words)), true);
    }])),
    why: (words) => ["0", "1"].includes(words) && ((found.why = words === "1"), true),
    all: (words) => ["0", "1"].includes(words) && ((found.all = words === "1"), true),
    step: (words) => isWhole(words, iterations, 1) && (found.step = Number(words)),
    capsule: (words) => isCapsule(words, layers) && (found.capsule = triple(words)),
    off: (words) => {
      const known = [...new Set(words.split(","))].filter((each) => isCapsule(each, layers, 1)).map(triple);
      found.off = known.filter((each, place) => known.slice(0, place).filter(([n]) => n === each[0]).length < MOST_OFF);
      return found.off.length === words.split(",").length;
    },
  };
  const lost = [];
  for (const [name, words] of parts) if (!(await (Object.hasOwn(readers, name) && readers[name](words)))) lost.push(name);
  Object.assign(state, found);
  if (lost.length === 1 && lost[0] === "sample" && isWhole(parts.get("sample"), Infinity)) {
    const known = first.images ? `those here are 0 to ${first.images - 1}. Another is shown` : "there are none here";
    return `There is no test image ${Number(parts.get("sample"))}: ${known}.`;
  }
  const names = [...new Set(lost)].map((name) => (name.length > 20 ? `${name.slice(0, 19)}…` : name));
  return names.length ? `A part of the address was not understood and is left out: ${names.slice(0, 5).join(", ")}${names.length > 5 ? ", …" : ""}.` : "";
}

export const isChanged = () => CHANGES.some((name) => state.change[name] !== 0);

export const isBlank = (image) => Boolean(image?.pixels) && !image.pixels.some(Boolean);

export const sameCapsule = (one, other) => Boolean(one && other) && join(one) === join(other);
