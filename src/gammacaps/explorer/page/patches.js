// Where in the image a capsule looks: boxes on the pad and on the attacked image while one points at it.

import { get } from "./ask.js";
import { make } from "./make.js";

const MOST = 4; // boxes at once

export class Patches {
  constructor(place) {
    this.place = place;
    this.found = null;
  }

  async load() {
    this.found = await get(`/api/patches?network=${this.place}`);
  }

  // Marks what a capsule of this tree looks at, "1.4" say; null takes the marks away.
  mark(tree, name) {
    const boxes = this.found && tree && name ? this.boxes(tree, ...name.split(".").map(Number)) : [];
    for (const picture of document.querySelectorAll(".pad, .shots .shot")) {
      picture.querySelectorAll(".patch").forEach((each) => each.remove());
      for (const box of boxes) {
        const mark = make("div", { class: "patch" });
        ["left", "top", "width", "height"].forEach((side, k) => (mark.style[side] = `${100 * box[k]}%`));
        picture.append(mark);
      }
    }
  }

  boxes(tree, layer, capsule) {
    const top = layer === tree.layers.length - 1;
    // Of a class what each of its capsules looks at most, of any other but one patch.
    const roots = top && layer > 1 ? children(tree, layer, capsule).slice(0, MOST).map((each) => [layer - 1, each]) : [[layer, capsule]];
    const primaries = roots.map((root) => strongest(tree, ...root)).filter((each) => each !== null);
    const places = new Set(primaries.map((each) => Math.floor(each / this.found.types)));
    return [...places].map((each) => this.found.boxes[each]);
  }
}

// The active capsules below that chose this one, the strongest first.
function children(tree, layer, capsule) {
  const { nodes, activations } = tree.layers[layer - 1];
  const own = nodes.index.map((index, n) => ({ index, weight: nodes.coupling[n] * activations[index], parent: nodes.parent[n], active: nodes.active[n] }))
    .filter(({ parent, active }) => active && parent === capsule);
  return own.sort((a, b) => b.weight - a.weight).map(({ index }) => index);
}

// The primary capsule at the end of the strongest path down; null where nothing chose it.
export function strongest(tree, layer, capsule) {
  for (; layer > 0; layer--) {
    capsule = children(tree, layer, capsule)[0] ?? null;
    if (capsule === null) return null;
  }
  return capsule;
}
