// What the page says of itself: what failed, with a way to try again, and what is good to know and nothing to worry about.

import { byId } from "./make.js";

export function complain(words, again = null) {
  const box = byId("alert");
  box.hidden = !words;
  box.querySelector("p").textContent = words;
  box.querySelector("button").hidden = !again;
  box.querySelector("button").onclick = () => {
    complain("");
    again();
  };
}

// Takes back that something failed which has now come through; what else was said stays.
export function succeeded() {
  if (!byId("alert").querySelector("button").hidden) complain("");
}

// Until the view changes.
export function notify(words) {
  byId("notice").textContent = words;
}
