// Routing's iterations: which one the trees show, and all of them one after the other.

import { byId, make } from "./make.js";
import { state } from "./state.js";

const DIGITS = /^[1-9]$/;
const PAUSE = 900; // milliseconds from one to the next

// changed() is called when another iteration is to be shown; the function that is given back shows which one it is.
export function iterationControls(iterations, changed) {
  if (iterations < 2) return () => {};
  let timer = null;
  const set = (step) => {
    clearTimeout(timer);
    state.step = step === iterations ? null : step;
    changed();
  };
  const play = (step) => {
    set(step);
    if (step < iterations) timer = setTimeout(() => play(step + 1), PAUSE);
  };
  const watch = make("button", { type: "button", title: "Watch the capsules choose", onclick: () => play(1) }, "▶ Watch");
  const buttons = Array.from({ length: iterations }, (_, k) => make("button", { type: "button", "data-step": k + 1, "aria-label": `Iteration ${k + 1}`, onclick: () => set(k + 1) }, String(k + 1)));
  byId("steps").append(make("span", {}, "Iteration"), ...buttons, watch);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) return;
    if (DIGITS.test(event.key) && Number(event.key) <= iterations) set(Number(event.key));
  });
  return () => {
    const shown = Math.min(state.step ?? iterations, iterations);
    for (const button of buttons) button.setAttribute("aria-pressed", String(Number(button.dataset.step) === shown));
  };
}
