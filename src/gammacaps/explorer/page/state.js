// What is on show, and its address: everything stands after the #, so that it is never sent to a server.

const START = {
  image: null, // {sample: 3} or {pixels: Uint8Array}
  eps: 0, attack: "pgd", target: null,
  tau: 0.1, all: false, step: null, // routing's iteration, null: the last
  capsule: null, // [network, layer, capsule]
  off: [], // the same
};

export const state = structuredClone(START);

const join = (triple) => triple.join(".");
const triple = (words) => words.split(".").map(Number);
const isTriple = (numbers) => numbers.length === 3 && numbers.every((n) => Number.isInteger(n) && n >= 0);
const isWhole = (words) => /^\d{1,9}$/.test(words ?? "");
const within = (words, low, high) => words !== null && words !== "" && Number(words) >= low && Number(words) <= high;

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
  if (state.eps > 0) parts.set("eps", state.eps);
  if (state.attack !== START.attack) parts.set("attack", state.attack);
  if (state.target !== null) parts.set("target", state.target);
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

// Takes the state from the address; what can't be read there is left out.
export async function recall(bytes) {
  const parts = new URLSearchParams(location.hash.slice(1));
  const found = structuredClone(START);
  if (isWhole(parts.get("sample"))) found.image = { sample: Number(parts.get("sample")) };
  if (parts.has("pixels")) {
    const pixels = await unpacked(parts.get("pixels"), bytes).catch(() => null);
    if (pixels?.length === bytes) found.image = { pixels };
  }
  if (within(parts.get("eps"), 0, 1)) found.eps = Number(parts.get("eps"));
  if (["pgd", "fgsm", "vote", "noise"].includes(parts.get("attack"))) found.attack = parts.get("attack");
  if (isWhole(parts.get("target"))) found.target = Number(parts.get("target"));
  if (within(parts.get("tau"), 0, 0.99)) found.tau = Number(parts.get("tau"));
  if (isWhole(parts.get("step"))) found.step = Number(parts.get("step"));
  found.all = parts.get("all") === "1";
  const capsule = triple(parts.get("capsule") ?? "");
  if (isTriple(capsule)) found.capsule = capsule;
  found.off = (parts.get("off") ?? "").split(",").map(triple).filter(isTriple);
  Object.assign(state, found);
}

export const sameCapsule = (one, other) => Boolean(one && other) && join(one) === join(other);
