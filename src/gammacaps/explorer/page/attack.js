// The attack's controls: a coarse attack follows the slider, the exact one comes when it rests.

import { whileDragged } from "./change.js";
import { byId, make, radius } from "./make.js";
import { state } from "./state.js";

export function attackControls(facts, { changed, moving, rested, stop, find }) {
  const [eps, value, kind, target] = ["eps", "eps-value", "attack-kind", "target"].map(byId);
  target.append(...facts.class_names.map((name, place) => make("option", { value: place }, name)));
  kind.append(...facts.attacks.map((each) => make("option", { value: each.name }, each.words)));
  const aims = () => facts.attacks.find((each) => each.name === kind.value)?.aims;
  const tell = () => {
    value.textContent = state.eps ? radius(state.eps) : "none";
    eps.setAttribute("aria-valuetext", state.eps ? `eps ${radius(state.eps)}` : "no attack");
  };
  // The radius of the training, which may lie between two steps of the slider, takes the place of the nearest.
  const slid = () => {
    const at = Number(eps.value);
    state.eps = at && Math.abs(at - facts.eps) < eps.step / 2 ? facts.eps : at;
  };
  const read = () => {
    state.attack = kind.value;
    state.target = target.value === "" ? null : Number(target.value);
    target.disabled = !aims();
  };
  const done = () => {
    read();
    changed(state.eps === 0);
  };
  whileDragged(eps, {
    moving: () => {
      slid();
      tell();
      read();
      moving();
    },
    rested,
    done: () => {
      slid();
      read();
      changed(false);
    },
  });
  for (const each of [kind, target]) each.addEventListener("change", done);
  byId("break").addEventListener("click", () => {
    read();
    find();
  });
  byId("stop").addEventListener("click", stop);
  return function show() {
    if (state.target !== null && state.target >= facts.class_names.length) state.target = null;
    eps.max = Math.max(0.5, state.eps);
    eps.value = state.eps;
    kind.value = state.attack;
    if (!kind.value) kind.value = state.attack = "pgd";
    target.value = state.target ?? "";
    target.disabled = !aims();
    tell();
  };
}

// One bar for all networks; null: that network is done.
export function progressBar() {
  const [box, bar] = [byId("progress"), byId("progress-bar")];
  const parts = new Map();
  return (place, done, of = 0) => {
    if (done === null) parts.delete(place);
    else parts.set(place, [done, of]);
    box.hidden = parts.size === 0;
    const known = [...parts.values()].filter(([, total]) => total > 0);
    if (known.length) {
      bar.max = known.reduce((sum, [, total]) => sum + total, 0);
      bar.value = known.reduce((sum, [now]) => sum + now, 0);
    } else bar.removeAttribute("value");
  };
}
