// The page: what is on show is in `state`; whoever changes it calls one of the functions below.

import { get } from "./ask.js";
import { attackControls, progressBar } from "./attack.js";
import { CapsulePanel } from "./capsule.js";
import { changeControls } from "./change.js";
import { Pad, pixelsOf } from "./draw.js";
import { exportView } from "./export.js";
import { byId, make, radius } from "./make.js";
import { Network } from "./network.js";
import { closeWhenLeft } from "./over.js";
import { CHANGES, fromBase64, isBlank, isChanged, recall, remember as write, sameCapsule, startAt, state } from "./state.js";
import { Story } from "./story.js";
import { theme } from "./theme.js";

const ROUTING = { sda: "scaled-distance-agreement routing", rba: "routing by agreement", em: "EM routing" };
const DIGITS = /^[1-9]$/;

theme(byId("theme"));
let networks = [], panel, pad, story, showAttack, showChange, samples = [];

function complain(words, again = null) {
  const box = byId("alert");
  box.hidden = !words;
  box.querySelector("p").textContent = words;
  box.querySelector("button").hidden = !again;
  box.querySelector("button").onclick = () => {
    complain("");
    again();
  };
}

// What is good to know and nothing to worry about, until the view changes.
function notify(words) {
  byId("notice").textContent = words;
}

function remember(step) {
  notify("");
  byId("broken").textContent = "";
  complain("");
  return write(step);
}

const failed = (error) => complain(error.message, () => refresh());

// Asks every network anew; the promise is kept when all have answered.
function refresh() {
  stale = resting = false;
  showControls();
  panel.update();
  return Promise.all(networks.map((network) => network.update()));
}

function redraw() {
  showControls();
  for (const network of networks) network.showTrees();
}

function showControls() {
  showAttack();
  showChange();
  byId("why").setAttribute("aria-pressed", String(state.why));
  byId("sides").hidden = state.eps === 0;
  for (const button of byId("sides").children) button.setAttribute("aria-pressed", String(button.dataset.side === state.side));
  byId("tau").value = state.tau;
  byId("tau-value").textContent = String(state.tau);
  byId("all").checked = state.all;
  byId("pad-hint").hidden = Boolean(state.image) && !isBlank(state.image);
  byId("undo").disabled = pad.history.length === 0;
  const thumbs = [...byId("samples").children];
  const chosen = thumbs.find((button) => Number(button.dataset.sample) === state.image?.sample);
  for (const button of thumbs) {
    button.setAttribute("aria-pressed", String(button === chosen));
    button.tabIndex = button === (chosen ?? thumbs[0]) ? 0 : -1; // one stop for the tab key, arrows for the rest
  }
  if (chosen) within(byId("samples"), chosen);
  const iterations = Math.max(...networks.map((network) => network.facts.iterations ?? 1));
  for (const button of byId("steps").querySelectorAll("[data-step]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.step) === Math.min(state.step ?? iterations, iterations)));
  }
  const chips = state.off.filter(([place]) => networks[place]).map((capsule) => make("button", { type: "button", "aria-label": `Switch ${networks[capsule[0]].tell(capsule)} on again`, onclick: () => toggle(capsule) },
    `${networks.length > 1 ? networks[capsule[0]].facts.name + ": " : ""}${networks[capsule[0]].tell(capsule)}`));
  byId("off").hidden = chips.length === 0;
  byId("off").replaceChildren("Switched off:", ...chips);
}

// Arrows, Home and End go from test image to test image.
function walkSamples(event) {
  const thumbs = [...byId("samples").children];
  const here = thumbs.indexOf(event.target.closest("button"));
  const row = thumbs.filter((each) => each.offsetTop === thumbs[0].offsetTop).length;
  const to = { ArrowLeft: here - 1, ArrowRight: here + 1, ArrowUp: here - row, ArrowDown: here + row, Home: 0, End: thumbs.length - 1 }[event.key];
  if (here < 0 || !thumbs[to]) return;
  event.preventDefault();
  thumbs[here].tabIndex = -1;
  thumbs[to].tabIndex = 0;
  thumbs[to].focus();
}

// Scrolls a box, and nothing around it, until a part of it is in sight.
function within(box, part) {
  const [outer, inner] = [box, part].map((each) => each.getBoundingClientRect());
  if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - 4;
}

function choose(capsule) {
  state.capsule = capsule;
  remember();
  redraw();
  panel.update();
  byId("capsule").scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function toggle(capsule) {
  const on = state.off.filter((each) => !sameCapsule(each, capsule));
  state.off = on.length < state.off.length ? on : [...on, capsule];
  remember();
  refresh();
}

function pick(sample) {
  state.image = { sample };
  pad.history = [];
  remember();
  refresh();
}

function use(pixels) {
  pad.keep();
  pad.show(pixels);
  state.image = { pixels: pad.pixels.slice() };
  remember();
  refresh();
}

// The exact pixels of a picked image come with the answer.
function answered(network) {
  if (!byId("alert").querySelector("button").hidden) complain(""); // that a question failed, and not what else went wrong
  if (network.place === 0 && (state.image?.sample !== undefined || isChanged())) pad.show(fromBase64(network.answer.sides[0].pixels));
}

async function open(file) {
  try {
    if (file.size > 5e7) throw new Error("too large");
    use(await pixelsOf(file, networks[0].facts.image_shape));
  } catch {
    complain("That file can't be read as an image: try a PNG or JPEG of at most 50 MB and 50 million pixels.");
  }
}

let asking = false, stale = false, resting = false;

// While a stroke is being drawn or a slider dragged: the next question follows the last answer.
async function follow(what) {
  stale = asking;
  resting = false;
  if (asking) return;
  asking = true;
  showControls();
  await Promise.all(networks.map((network) => network.update(what)));
  asking = false;
  if (stale) follow(what);
  else if (resting) refresh();
}

// A slider that is held still is asked about exactly, but not before its coarse answer is there to look at.
function rest() {
  if (asking) resting = true;
  else refresh();
}

// The pad shows the image as it was changed: who draws on that has a new one.
function drawn(ended) {
  state.image = { pixels: pad.pixels.slice() };
  state.change = Object.fromEntries(CHANGES.map((name) => [name, 0]));
  stale = false;
  if (ended) {
    remember();
    refresh();
  } else follow("drawing");
}

// Puts the attack at the weakest that the first network does not withstand.
async function breakIt() {
  if (!state.image) return;
  try {
    const found = await networks[0].weakest();
    if (found.eps !== null) state.eps = found.eps;
    remember();
    refresh();
    byId("broken").textContent = found.eps === null ? `It holds up to ${radius(found.most)}.`
      : `${radius(found.eps)} breaks it, ${radius(found.held)} does not.`;
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  }
}

async function showSamples() {
  const label = byId("pick-class").value;
  try {
    const found = await get(`/api/samples?count=60${label === "" ? "" : `&class=${label}`}`);
    const names = networks[0].facts.class_names;
    samples = found.samples;
    byId("samples").replaceChildren(...samples.map(({ sample, label: k, png }) =>
      make("button", { type: "button", "data-sample": sample, "aria-label": `Test image ${sample}${k === null ? "" : `: ${names[k]}`}`, title: names[k] ?? null, onclick: () => pick(sample) }, make("img", { src: png, alt: "" }))));
    const { labelled } = networks[0].facts;
    byId("pick-note").textContent = found.missing || found.note || (labelled ? "" : `Of ${found.source}, whose classes are not this network's.`);
    byId("pick-class").hidden = !labelled;
    showControls();
  } catch (error) {
    failed(error);
  }
}

function stepControls(iterations) {
  const box = byId("steps");
  if (iterations < 2) return;
  let timer = null;
  const set = (step) => {
    clearTimeout(timer);
    state.step = step === iterations ? null : step;
    remember(false);
    redraw();
  };
  const play = (step) => {
    set(step);
    if (step < iterations) timer = setTimeout(() => play(step + 1), 900);
  };
  const watch = make("button", { type: "button", title: "Watch the capsules choose", onclick: () => play(1) }, "▶ Watch");
  const buttons = Array.from({ length: iterations }, (_, k) => make("button", { type: "button", "data-step": k + 1, "aria-label": `Iteration ${k + 1}`, onclick: () => set(k + 1) }, String(k + 1)));
  box.append(make("span", {}, "Iteration"), ...buttons, watch);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) return;
    if (DIGITS.test(event.key) && Number(event.key) <= iterations) set(Number(event.key));
  });
}

function told(facts) {
  const kind = { gamma: "a capsule network", matrix: "a matrix-capsule network", cnn: "a convolutional network" }[facts.architecture];
  const training = facts.way === null ? "" : ` trained ${facts.way}`;
  const hidden = facts.layers.length === 3 ? "hidden" : null; // there is but one
  const layers = facts.layers.map(({ name, capsules: n }, place) => `${n.toLocaleString("en")} ${place === 1 ? hidden ?? name : name}`);
  const capsules = layers.length ? ` ${layers.slice(0, -1).join(", ")} and ${layers.at(-1)} capsules.` : "";
  return `${facts.name}: ${kind}${facts.routing ? ` with ${ROUTING[facts.routing]}` : ""},${training || " how it was trained is not recorded"}.${capsules}`;
}

function connect() {
  const [pen, eraser] = [byId("pen"), byId("eraser")];
  const hold = (erasing) => {
    pad.erasing = erasing;
    pen.setAttribute("aria-pressed", String(!erasing));
    eraser.setAttribute("aria-pressed", String(erasing));
  };
  pen.addEventListener("click", () => hold(false));
  eraser.addEventListener("click", () => hold(true));
  byId("undo").addEventListener("click", () => pad.undo());
  byId("clear").addEventListener("click", () => {
    pad.clear();
    hold(false);
  });
  byId("file").addEventListener("change", (event) => {
    if (event.target.files[0]) open(event.target.files[0]);
    event.target.value = "";
  });
  const box = document.querySelector(".pad");
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget ?? box.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => {
    if (event.clipboardData?.files[0]) open(event.clipboardData.files[0]);
  });
  byId("tau").addEventListener("input", (event) => (byId("tau-value").textContent = event.target.value));
  byId("tau").addEventListener("change", (event) => {
    state.tau = Number(event.target.value);
    remember(false);
    refresh();
  });
  byId("all").addEventListener("change", (event) => {
    state.all = event.target.checked;
    remember(false);
    refresh();
  });
  for (const button of byId("sides").children) {
    button.addEventListener("click", () => {
      state.side = button.dataset.side;
      remember(false);
      redraw();
    });
  }
  byId("why").addEventListener("click", () => {
    state.why = !state.why;
    remember(false);
    redraw();
  });
  byId("pick-class").addEventListener("change", showSamples);
  byId("samples").addEventListener("keydown", walkSamples);
  for (const button of document.querySelectorAll("[data-export]")) {
    button.addEventListener("click", async () => {
      byId("export").open = false;
      const { done = "", failed: words = "" } = await exportView(button.dataset.export, networks, panel);
      complain(words);
      notify(done);
    });
  }
  closeWhenLeft();
  window.addEventListener("popstate", () => {
    story.leave({ restore: false });
    load();
  });
}

// The page for a step of the story, or as it was before it: no step for the back button.
function shown() {
  write(false);
  if (state.image?.pixels) pad.show(state.image.pixels);
  return refresh();
}

// Everything from the address.
async function load() {
  const words = await recall(networks.map((network) => network.facts));
  const first = !state.image && samples.length > 0;
  if (first) state.image = { sample: samples[0].sample };
  if (first || words) write(false);
  notify(words);
  if (state.image?.pixels) pad.show(state.image.pixels);
  refresh();
}

async function start() {
  complain("");
  let facts;
  try {
    facts = (await get("/api/model")).networks;
  } catch (error) {
    complain(error.message, start);
    return;
  }
  const first = facts[0];
  const [channels, height, width] = first.image_shape;
  byId("title").textContent = facts.length > 1 ? `${first.name} and ${facts[1].name}, side by side` : `What does ${first.name} see?`;
  document.title = `${facts.map(({ name }) => name).join(" and ")} · gammacaps explorer`;
  byId("about").replaceChildren(...facts.flatMap((each, place) => [place ? make("br") : "", told(each)]));
  byId("audited").replaceChildren(...facts.filter(({ audit }) => audit).map(({ name, audit }) => make("p", { class: "note" }, `The audit of ${name}: ${audit}`)));
  byId("size").textContent = `${width} × ${height} pixels${channels === 3 ? ", colour" : ""}`;
  byId("pick-class").append(make("option", { value: "" }, "all"), ...first.class_names.map((name, place) => make("option", { value: place }, name)));
  startAt(first.tau);
  const progress = progressBar();
  networks = facts.map((each, place) => new Network(place, each, facts.length > 1, { progress, failed, answered, choose }));
  panel = new CapsulePanel(networks, {
    failed, pick, toggle,
    close: () => {
      state.capsule = null;
      remember();
      redraw();
      panel.update();
      byId("capsule").focus();
    },
  });
  pad = new Pad(byId("pad"), first.image_shape, drawn);
  const dragged = { moving: () => follow("dragging"), rested: rest };
  showAttack = attackControls(first, {
    ...dragged,
    changed: (idle) => {
      remember();
      if (idle) showControls();
      else refresh();
    },
    stop: () => networks.forEach((network) => network.stop()),
    find: breakIt,
  });
  showChange = changeControls({
    ...dragged,
    done: () => {
      if (!isChanged() && state.image?.pixels) pad.show(state.image.pixels);
      remember();
      refresh();
    },
  });
  story = new Story(networks, {
    failed, redraw,
    samples: () => samples,
    show: shown,
    restore: (before) => {
      Object.assign(state, before);
      shown();
    },
  });
  byId("answers").replaceChildren(...networks.map((network) => network.scores));
  byId("attacked").replaceChildren(...networks.map((network) => network.shots));
  byId("networks").replaceChildren(...networks.map((network) => network.element));
  for (const id of ["answers", "networks"]) byId(id).classList.toggle("two", networks.length > 1);
  stepControls(Math.max(...facts.map((each) => (each.trees ? each.iterations : 1))));
  connect();
  for (const network of networks) if (network.facts.trees) network.patches.load().catch(failed);
  await showSamples();
  await load();
  document.documentElement.dataset.ready = "true";
}

start();
