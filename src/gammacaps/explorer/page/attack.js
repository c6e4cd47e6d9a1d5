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
    value.textContent = Number(eps.value) ? radius(Number(eps.value)) : "none";
    eps.setAttribute("aria-valuetext", Number(eps.value) ? `eps ${radius(Number(eps.value))}` : "no attack");
  };
  const read = () => {
    state.eps = Number(eps.value);
    state.attack = kind.value;
    state.target = target.value === "" ? null : Number(target.value);
    target.disabled = !aims();
  };
  const done = () => {
    const idle = state.eps === 0 && Number(eps.value) === 0;
    read();
    changed(idle);
  };
  whileDragged(eps, {
    moving: () => {
      tell();
      read();
      moving();
    },
    rested,
    done: () => {
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
