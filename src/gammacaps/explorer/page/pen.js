// Drawing by keyboard: arrows move a cursor over the pad, and while the pen is down they draw a line.

import { make } from "./make.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const FAR = 4; // pixels in one move with the shift key

export class Pen {
  constructor(pad) {
    this.pad = pad;
    this.down = false;
    this.at = null; // in pixels of the image; null while another hand draws
    this.mark = make("div", { class: "cursor", hidden: true });
    this.words = make("p", { class: "unseen", role: "status" });
    const { canvas } = pad;
    canvas.after(this.mark, this.words);
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => {
      this.lift();
      this.hide();
    });
    canvas.addEventListener("pointerdown", () => this.hide());
  }

  hide() {
    this.down = false;
    this.at = null;
    this.show();
  }

  show() {
    const { width, height, erasing } = this.pad;
    this.mark.hidden = this.at === null;
    this.mark.classList.toggle("down", this.down);
    this.mark.classList.toggle("erasing", erasing);
    if (this.at) [this.mark.style.left, this.mark.style.top] = [`${(100 * this.at.x) / width}%`, `${(100 * this.at.y) / height}%`];
  }

  // The stroke ends: one step for undo, from pen down to pen up.
  lift() {
    if (!this.down) return;
    this.down = false;
    this.pad.changed(true);
  }

  key(event) {
    const { pad } = this;
    const letter = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey || event.altKey) {
      if (letter === "z") pad.undo();
      return;
    }
    if (MOVES[event.key]) this.move(...MOVES[event.key].map((one) => (event.shiftKey ? FAR : 1) * one));
    else if (event.key === " ") this.turn();
    else if (letter === "u" || letter === "c") {
      this.down = false;
      pad[letter === "u" ? "undo" : "clear"]();
    } else return;
    this.at ??= { x: pad.width / 2, y: pad.height / 2 };
    this.show();
    event.preventDefault();
  }

  move(right, below) {
    const { pad } = this;
    const from = this.at ?? { x: pad.width / 2, y: pad.height / 2 };
    const inside = (value, side) => Math.min(side - 0.5, Math.max(0.5, value));
    this.at = { x: inside(from.x + right, pad.width), y: inside(from.y + below, pad.height) };
    if (!this.down) return;
    pad.stroke(from, this.at);
    pad.paint();
    pad.changed(false);
  }

  // Down, with a first dot, or up.
  turn() {
    const { pad } = this;
    this.words.textContent = this.down ? "Pen up." : "Pen down.";
    if (this.down) {
      this.lift();
      return;
    }
    this.at ??= { x: pad.width / 2, y: pad.height / 2 };
    this.down = true;
    pad.keep();
    pad.stroke(this.at, this.at);
    pad.paint();
    pad.changed(false);
  }
}
