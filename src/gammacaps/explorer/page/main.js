// The page: what is on show is in `state`; whoever changes it calls one of the functions below.

import { showNetworks } from "./about.js";
import { get } from "./ask.js";
import { attackControls, progressBar } from "./attack.js";
import { CapsulePanel } from "./capsule.js";
import { changeControls } from "./change.js";
import { Pad, pixelsOf } from "./draw.js";
import { exportView } from "./export.js";
import { takeFiles } from "./incoming.js";
import { iterationControls } from "./iterations.js";
import { byId, make, radius } from "./make.js";
import { complain, notify, succeeded } from "./messages.js";
import { Network } from "./network.js";
import { closeWhenLeft } from "./over.js";
import { Samples } from "./samples.js";
import { CHANGES, fromBase64, isBlank, isChanged, recall, remember as write, sameCapsule, startAt, state } from "./state.js";
import { Story } from "./story.js";
import { theme } from "./theme.js";

theme(byId("theme"));
let networks = [], panel, pad, story, samples, showAttack, showChange, showIteration;

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
  samples.mark();
  showIteration();
  const chips = state.off.filter(([place]) => networks[place]).map((capsule) => make("button", { type: "button", "aria-label": `Switch ${networks[capsule[0]].tell(capsule)} on again`, onclick: () => toggle(capsule) },
    `${networks.length > 1 ? networks[capsule[0]].facts.name + ": " : ""}${networks[capsule[0]].tell(capsule)}`));
  byId("off").hidden = chips.length === 0;
  byId("off").replaceChildren("Switched off:", ...chips);
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
  succeeded();
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
  const first = !state.image && samples.list.length > 0;
  if (first) state.image = { sample: samples.list[0].sample };
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
  showNetworks(facts);
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
    samples: () => samples.list,
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
  showIteration = iterationControls(Math.max(...facts.map((each) => (each.trees ? each.iterations : 1))), () => {
    remember(false);
    redraw();
  });
  samples = new Samples(first, { pick, failed, shown: showControls });
  takeFiles(open);
  connect();
  for (const network of networks) if (network.facts.trees) network.patches.load().catch(failed);
  await samples.show();
  await load();
  document.documentElement.dataset.ready = "true";
}

start();
