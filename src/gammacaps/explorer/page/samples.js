// The test images to choose from.

import { get } from "./ask.js";
import { byId, make } from "./make.js";
import { state } from "./state.js";

// Words of which the first sentence is seen and the others unfold, so that the tree keeps its room.
function folded(words) {
  const [first, ...more] = words.split(/(?<=\.) /);
  return more.length ? make("details", {}, make("summary", {}, first), more.join(" ")) : first;
}

// hooks: pick(sample); failed(error); shown(), once they are there.
export class Samples {
  constructor(facts, hooks) {
    this.facts = facts;
    this.hooks = hooks;
    this.list = [];
    this.box = byId("samples");
    const names = facts.class_names.map((name, place) => make("option", { value: place }, name));
    byId("pick-class").append(make("option", { value: "" }, "all"), ...names);
    byId("pick-class").addEventListener("change", () => this.show());
    this.box.addEventListener("keydown", (event) => this.walk(event));
  }

  async show() {
    const label = byId("pick-class").value;
    try {
      const found = await get(`/api/samples?count=60${label === "" ? "" : `&class=${label}`}`);
      this.list = found.samples;
      this.box.replaceChildren(...found.samples.map((sample) => this.thumb(sample)));
      const { labelled } = this.facts;
      const plain = found.missing || (labelled ? "" : `Of ${found.source}, whose classes are not this network's.`);
      byId("pick-note").replaceChildren(plain || folded(found.note));
      byId("pick-class").hidden = !labelled;
      this.hooks.shown();
    } catch (error) {
      this.hooks.failed(error);
    }
  }

  thumb({ sample, label, png }) {
    const name = this.facts.class_names[label];
    return make("button", {
      type: "button", "data-sample": sample, title: name ?? null,
      "aria-label": `Test image ${sample}${label === null ? "" : `: ${name}`}`,
      onclick: () => this.hooks.pick(sample),
    }, make("img", { src: png, alt: "" }));
  }

  // Shows which one is chosen.
  mark() {
    const thumbs = [...this.box.children];
    const chosen = thumbs.find((button) => Number(button.dataset.sample) === state.image?.sample);
    for (const button of thumbs) {
      button.setAttribute("aria-pressed", String(button === chosen));
      button.tabIndex = button === (chosen ?? thumbs[0]) ? 0 : -1; // one stop for the tab key, arrows for the rest
    }
    if (chosen) within(this.box, chosen);
  }

  // Arrows, Home and End go from test image to test image.
  walk(event) {
    const thumbs = [...this.box.children];
    const here = thumbs.indexOf(event.target.closest("button"));
    const row = thumbs.filter((each) => each.offsetTop === thumbs[0].offsetTop).length;
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, ArrowUp: here - row, ArrowDown: here + row, Home: 0, End: thumbs.length - 1 }[event.key];
    if (here < 0 || !thumbs[to]) return;
    event.preventDefault();
    thumbs[here].tabIndex = -1;
    thumbs[to].tabIndex = 0;
    thumbs[to].focus();
  }
}

// Scrolls a box, and nothing around it, until a part of it is in sight.
function within(box, part) {
  const [outer, inner] = [box, part].map((each) => each.getBoundingClientRect());
  if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - 4;
}
