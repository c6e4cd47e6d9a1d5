// Sliders that turn, shift, blur and darken the image: the answer follows while they move.

import { byId } from "./make.js";
import { CHANGES, state } from "./state.js";

const REST = 250; // milliseconds after which a slider that is still held counts as at rest
const UNITS = { turn: (value) => `${value}°`, dark: (value) => `${Math.round(100 * value)}%` };

// moving() while one moves, rested() when it rests, let go() at the end.
export function whileDragged(slider, { moving, rested, done }) {
  let timer = null;
  slider.addEventListener("input", () => {
    moving();
    clearTimeout(timer);
    timer = setTimeout(rested, REST);
  });
  slider.addEventListener("change", () => {
    clearTimeout(timer);
    done();
  });
}

export function changeControls(hooks) {
  const sliders = CHANGES.map(byId);
  const show = () => {
    for (const slider of sliders) {
      const value = state.change[slider.id];
      const words = value === 0 ? "–" : UNITS[slider.id]?.(value) ?? `${value} px`;
      slider.value = value;
      slider.setAttribute("aria-valuetext", words === "–" ? "unchanged" : words);
      slider.parentElement.querySelector("output").textContent = words;
    }
    byId("unchange").disabled = CHANGES.every((name) => state.change[name] === 0);
  };
  for (const slider of sliders) {
    whileDragged(slider, {
      ...hooks,
      moving: () => {
        state.change = { ...state.change, [slider.id]: Number(slider.value) };
        hooks.moving();
      },
      done: () => {
        state.change = { ...state.change, [slider.id]: Number(slider.value) };
        hooks.done();
      },
    });
  }
  byId("unchange").addEventListener("click", () => {
    state.change = Object.fromEntries(CHANGES.map((name) => [name, 0]));
    hooks.done();
  });
  return show;
}
