// One network: asks for the tree of the image, attacked or not, and shows its scores and trees.

import { Latest, follow, post } from "./ask.js";
import { badge, bars, make, two } from "./make.js";
import { sameCapsule, state, toBase64 } from "./state.js";
import { plant } from "./tree.js";

export class Network {
  constructor(place, facts, many, hooks) {
    [this.place, this.facts, this.hooks] = [place, facts, hooks];
    this.latest = new Latest();
    this.answer = null; // of the parse or of the attack, the same shape for both
    this.line = make("p", { class: "answer", role: "status" });
    this.table = make("div");
    this.scores = make("div", {}, this.line, this.table);
    this.heading = many ? make("h3", {}, facts.name) : null;
    this.verdict = make("div", { class: "verdict-line", hidden: true });
    this.pair = make("div", { class: "sides" });
    this.readout = make("p", { class: "readout" });
    this.element = make("div", { class: "network" }, this.heading, this.verdict, this.pair, this.readout);
  }

  get off() {
    return state.off.filter(([place]) => place === this.place).map(([, layer, capsule]) => [layer, capsule]);
  }

  question() {
    const image = state.image.pixels ? { pixels: toBase64(state.image.pixels) } : state.image;
    return { network: this.place, image, tau: state.tau, all: state.all, off: this.off };
  }

  // Asks anew; `live` is while a stroke is being drawn, when no attack is made.
  async update(live = false) {
    const signal = this.latest.next();
    this.hooks.progress(this.place, null); // of what has become stale
    if (!state.image) return this.empty();
    const attacking = state.eps > 0 && !live;
    this.element.classList.add("busy");
    try {
      // A new image is parsed first, since an attack may take its time.
      if (!attacking || this.image !== state.image) {
        const body = live ? { ...this.question(), last: true } : this.question();
        const found = await post("/api/parse", body, signal);
        this.answer = { ...found, sides: [found] };
        this.image = state.image;
        this.show();
        this.hooks.answered(this);
      }
      if (attacking) {
        const body = { ...this.question(), attack: this.kind(), eps: state.eps };
        if (state.target !== null && this.kind() !== "noise") body.target = state.target;
        this.hooks.progress(this.place, 0, 0);
        const found = await follow("/api/attack", body, signal, (done, of) => this.hooks.progress(this.place, done, of));
        this.answer = { ...found, sides: [found.clean, found.attacked] };
        this.show();
        this.hooks.answered(this);
      }
      this.element.classList.remove("busy");
    } catch (error) {
      if (error.name === "AbortError") return;
      this.element.classList.remove("busy");
      this.hooks.failed(error);
    } finally {
      if (attacking && !signal.aborted) this.hooks.progress(this.place, null);
    }
  }

  stop() {
    this.latest.stop();
    this.element.classList.remove("busy");
    this.hooks.progress(this.place, null);
  }

  kind() {
    return state.attack === "vote" && !this.facts.trees ? "pgd" : state.attack;
  }

  empty() {
    this.answer = null;
    this.line.replaceChildren();
    this.table.replaceChildren(make("p", { class: "missing" }, "Draw something or pick an image, and the network will say what it sees."));
    this.pair.replaceChildren();
    this.verdict.hidden = true;
    this.element.classList.remove("busy");
  }

  show() {
    this.showScores();
    this.showVerdict();
    this.showTrees();
  }

  showScores() {
    const { answer, facts } = this;
    const [clean, attacked] = answer.sides;
    const before = answer.before ?? null;
    const first = attacked ? clean : before ?? clean;
    const second = attacked ?? (before ? clean : null);
    const last = second ?? first;
    const name = (place) => facts.class_names[place];
    const rows = first.scores.map((value, place) => ({
      name: name(place), value, second: second?.scores[place] ?? null, top: place === last.predicted,
    }));
    const many = rows.length > 20;
    if (many) rows.sort((a, b) => (b.second ?? b.value) - (a.second ?? a.value));
    const words = attacked ? "after the attack taken for" : before ? "with capsules off taken for" : "taken for";
    const legend = second && make("p", { class: "legend-line" },
      make("span", {}, make("i"), attacked ? "clean" : "all capsules on"),
      make("span", { class: "second" }, make("i"), attacked ? "attacked" : "some switched off"));
    const lead = this.heading ? `${facts.name}: ${words}` : words[0].toUpperCase() + words.slice(1);
    this.line.replaceChildren(make("small", {}, lead), ` ${name(last.predicted)}`);
    this.table.replaceChildren(
      bars(rows.slice(0, 20), `Scores by class${many ? ", the 20 highest" : ""}`), legend ?? "");
  }

  showVerdict() {
    const { answer, facts } = this;
    const [clean, attacked] = answer.sides;
    this.verdict.hidden = !attacked;
    if (!attacked) return;
    const held = clean.predicted === attacked.predicted;
    const [was, now] = [clean, attacked].map((side) => facts.class_names[side.predicted]);
    const shot = (png, words) => make("figure", {}, make("img", { src: png, alt: words }), make("figcaption", {}, words));
    const magnified = answer.difference.magnified;
    const largest = answer.difference.largest;
    this.verdict.replaceChildren(
      make("div", { class: "shots" }, shot(clean.png, "clean"), shot(attacked.png, "attacked"),
        shot(answer.difference.png, magnified >= 1.05 ? `difference × ${+magnified.toFixed(1)}` : "difference")),
      make("p", { class: "words" }, badge(held ? "pass" : "fail", held ? `It holds: still ${was}` : `It breaks: ${was} → ${now}`),
        make("br"), `No pixel changed by more than ${two(largest)}. ${answer.words ? tail(answer.words) : ""}`));
  }

  showTrees() {
    const { answer } = this;
    if (!answer?.drawings) {
      this.pair.replaceChildren(make("p", { class: "missing" }, "This network has no capsules whose choices could be drawn: it shows its scores alone."));
      return;
    }
    const titles = answer.drawings.length > 1 ? ["Clean", "Attacked"] : [""];
    const chosen = state.capsule?.[0] === this.place ? state.capsule.slice(1).join(".") : null;
    const sides = answer.drawings.map((drawings, side) => {
      const step = Math.min(state.step ?? drawings.length, drawings.length);
      const box = make("div", { class: "tree", tabindex: -1, role: "region", "aria-label": `${titles[side] || "Parse"} tree, ${this.facts.name}` });
      return [box, drawings[step - 1], make("div", { class: "side" }, titles[side] && make("h4", {}, titles[side]), box)];
    });
    const scrolled = [...this.pair.querySelectorAll(".tree")].map((box) => box.scrollLeft);
    this.pair.replaceChildren(...sides.map(([, , side]) => side));
    sides.forEach(([box, drawing], side) => {
      plant(box, drawing, this.readout, chosen, (layer, capsule) => this.hooks.choose([this.place, layer, capsule]));
      box.scrollLeft = scrolled[side] ?? 0;
    });
  }

  // A capsule in words.
  tell([, layer, capsule]) {
    const { layers, class_names } = this.facts;
    return layer === layers.length - 1 ? `${class_names[capsule]}, a class capsule` : `${layers[layer].name}, capsule ${capsule}`;
  }

  isOff(capsule) {
    return state.off.some((each) => sameCapsule(each, capsule));
  }
}

// The first sentence tells what the badge says already.
const tail = (words) => words.slice(words.indexOf(". ") + 2);
