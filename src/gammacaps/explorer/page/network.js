// One network: asks for the tree of the image, attacked or not, and shows its scores and trees.

import { Latest, follow, post } from "./ask.js";
import { badge, bars, make, radius, two } from "./make.js";
import { Patches } from "./patches.js";
import { isBlank, isChanged, sameCapsule, state, toBase64 } from "./state.js";
import { plant } from "./tree.js";

const LOW = 0.5; // halfway between what training wants of an absent class and of a present one

export class Network {
  constructor(place, facts, many, hooks) {
    [this.place, this.facts, this.hooks] = [place, facts, hooks];
    this.latest = new Latest();
    this.answer = null; // of the parse or of the attack, the same shape for both
    this.spot = null; // a capsule that the story points at, "0.17" say
    this.line = make("p", { class: "answer", role: "status", style: `--place: ${place}` });
    this.table = make("div");
    this.scores = make("div", {}, this.line, this.table);
    this.heading = many ? make("h3", {}, facts.name) : null;
    this.words = make("p", { class: "words", hidden: true });
    this.because = make("p", { class: "why" });
    this.patches = new Patches(place);
    this.shots = make("div");
    this.pair = make("div", { class: "sides" });
    this.readout = make("p", { class: "readout" });
    this.element = make("div", { class: "network" }, this.heading, this.because, this.pair, this.readout);
  }

  get off() {
    return state.off.filter(([place]) => place === this.place).map(([, layer, capsule]) => [layer, capsule]);
  }

  question() {
    const image = state.image.pixels ? { pixels: toBase64(state.image.pixels) } : state.image;
    return { network: this.place, image, tau: state.tau, all: state.all, off: this.off, ...(isChanged() ? { change: state.change } : {}) };
  }

  // Asks anew. `live` is while a stroke is being drawn, when no attack is made, or a slider dragged, when a coarse one is.
  async update(live = null) {
    const signal = this.latest.next();
    this.hooks.progress(this.place, null); // of what has become stale
    if (!state.image) return this.empty();
    const attacking = state.eps > 0 && live !== "drawing";
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
        const body = { ...this.question(), ...this.aimed(), eps: state.eps, ...(live ? { coarse: true } : {}) };
        const progress = live ? () => {} : (done, of) => this.hooks.progress(this.place, done, of);
        progress(0, 0);
        const found = await follow("/api/attack", body, signal, progress);
        this.answer = { ...found, sides: [found.clean, found.attacked], coarse: Boolean(live) };
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

  // The smallest eps at which the attack changes the answer; `first` is tried before any other.
  async weakest(first = this.facts.eps) {
    const signal = this.latest.next();
    try {
      this.hooks.progress(this.place, 0, 0);
      return await follow("/api/breaking", { ...this.question(), ...this.aimed(), eps: first }, signal, (done, of) => this.hooks.progress(this.place, done, of));
    } finally {
      if (!signal.aborted) this.hooks.progress(this.place, null);
    }
  }

  stop() {
    this.latest.stop();
    this.element.classList.remove("busy");
    this.hooks.progress(this.place, null);
  }

  // The attack that is chosen; the first of the menu where it can't run on this network.
  attack() {
    const { attacks } = this.facts;
    return attacks.find((each) => each.name === state.attack) ?? attacks[0];
  }

  aimed() {
    const attack = this.attack();
    return { attack: attack.name, ...(state.target !== null && attack.aims ? { target: state.target } : {}) };
  }

  empty() {
    this.answer = null;
    this.line.replaceChildren();
    this.table.replaceChildren(make("p", { class: "missing" }, "Draw something or pick an image, and the network will say what it sees."));
    this.pair.replaceChildren();
    this.words.hidden = true;
    this.because.textContent = "";
    this.shots.replaceChildren();
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
    const right = answer.label === last.predicted ? ", which is right" : `; it is ${one(name(answer.label))}`;
    const truth = answer.label === null ? this.doubt(last) : `${right}${isActive(last) ? "" : ", though no class capsule is active"}`;
    this.line.replaceChildren(make("small", {}, lead), ` ${name(last.predicted)}`, truth && make("span", { class: "truth" }, truth));
    this.table.replaceChildren(
      bars(rows.slice(0, 20), `Scores by class${many ? ", the 20 highest" : ""}`), legend ?? "",
      attacked && before ? make("p", { class: "note" }, this.withoutThem(before, clean)) : "");
  }

  // Of an image whose class nobody knows: whether it shows anything, and whether a class capsule finds it there.
  doubt(side) {
    const { scores } = side;
    if (isBlank(this.image)) return ", though the image is empty";
    if (!isActive(side)) return ", though no class capsule is active";
    return this.facts.trees && Math.max(...scores) < LOW ? `, but no class reaches ${LOW}` : "";
  }

  // What switching off does to the clean image, which an attack's scores hide: to its class, and where it is most.
  withoutThem(before, clean) {
    const places = before.scores.map((_, place) => place);
    const change = (place) => Math.abs(clean.scores[place] - before.scores[place]);
    const most = places.reduce((best, place) => (change(place) > change(best) ? place : best));
    const told = [...new Set([before.predicted, clean.predicted, most])].map((place) =>
      `${this.facts.class_names[place]} ${two(before.scores[place])} → ${two(clean.scores[place])}`);
    return `Without ${this.off.length > 1 ? "them" : "it"}, on the clean image: ${told.join(", ")}.`;
  }

  showVerdict() {
    const { answer, facts } = this;
    const [clean, attacked] = answer.sides;
    this.words.hidden = !attacked && !answer.changed;
    if (!attacked) {
      if (answer.changed) this.words.textContent = tellChange(answer.changed, facts.class_names);
      const slot = "The attacked image comes here: drag the attack’s slider.";
      this.shots.replaceChildren(this.place ? "" : make("p", { class: "waiting" }, slot), this.words);
      return;
    }
    const shot = (kind, png, words, more) => make("figure", { class: kind }, make("div", { class: "shot" }, make("img", { src: png, alt: words })),
      make("figcaption", {}, words, more ? make("small", {}, more) : ""));
    const { magnified, largest, png } = answer.difference;
    this.shots.replaceChildren(make("div", { class: "shots" },
      shot("", attacked.png, this.heading ? `attacked: ${facts.name}` : "attacked"), this.words,
      shot("small", png, magnified >= 1.05 ? `difference × ${+magnified.toFixed(1)}` : "difference", "mid-grey: unchanged")));
    this.words.replaceChildren(...this.judge(), answer.coarse ? " A first look, in few steps." : "", ` No pixel changed by more than ${radius(outward(largest, answer.eps))}. ${answer.words ? tail(answer.words) : ""}`);
  }

  // The badge, and a sentence where it needs one. Only what was right can be broken.
  judge() {
    const { label, target, before, sides: [clean, attacked] } = this.answer;
    const name = (place) => this.facts.class_names[place];
    const held = clean.predicted === attacked.predicted;
    const [was, now] = [name(clean.predicted), name(attacked.predicted)];
    const aimed = target === clean.predicted;
    if (label !== null && clean.predicted !== label) {
      const when = before?.predicted === label ? "Wrong before the attack, with capsules off" : "Wrong from the start";
      const luck = target === label ? "The attack makes it right." : "The attack happens to make it right.";
      const then = aimed ? `The attack aims at ${was}, which is its answer already: choose another class.`
        : held ? `The attack leaves it at ${was}.` : attacked.predicted === label ? luck : `The attack makes it ${now}.`;
      return [badge("skip", `${when}: ${was}, though it is ${one(name(label))}`), " ", then];
    }
    if (aimed) return [badge("skip", `Aimed at ${was}, its answer already`), " ", `${held ? "" : `After the attack it is taken for ${now}. `}Choose another class to attack towards.`];
    return [badge(held ? "pass" : "fail", held ? `It holds: still ${was}` : `It breaks: ${was} → ${now}`)];
  }

  showTrees() {
    const { answer } = this;
    if (!answer) return; // there is no image yet
    if (!answer.drawings) {
      this.pair.replaceChildren(make("p", { class: "missing" }, "This network has no capsules whose choices could be drawn: it shows its scores alone."));
      return;
    }
    const titles = answer.drawings.length > 1 ? ["Clean", "Attacked"] : ["Parse"];
    const over = answer.drawings.length > 1 && state.side !== "clean" ? 1 : 0;
    const chosen = state.capsule?.[0] === this.place ? state.capsule.slice(1).join(".") : null;
    const sides = answer.drawings.map((drawings, side) => {
      const step = Math.min(state.step ?? drawings.length, drawings.length);
      const box = make("div", { class: "tree", tabindex: -1, role: "region", "aria-label": `${titles[side]} tree, ${this.facts.name}` });
      return [box, drawings[step - 1], make("div", { class: side === over ? "side" : "side under" }, box)];
    });
    const boxes = [...this.pair.querySelectorAll(".tree")];
    const scrolled = boxes.map((box) => box.scrollLeft);
    const tops = answer.sides.map((side) => `${this.facts.layers.length - 1}.${side.predicted}`);
    this.because.textContent = answer.sides[over].why?.words ?? "";
    const focused = document.activeElement?.dataset.capsule;
    const inside = boxes.findIndex((box) => box.contains(document.activeElement));
    this.pair.replaceChildren(...sides.map(([, , side]) => side));
    sides.forEach(([box, drawing], side) => {
      const marks = { chosen, leads: this.spot ?? (state.why ? tops[side] : null), moved: side === answer.drawings.length - 1 ? movedOf(answer.changed) : [] };
      plant(box, drawing, this.readout, marks, {
        choose: (layer, capsule) => this.hooks.choose([this.place, layer, capsule]),
        hover: (name) => this.patches.mark(answer.sides[side].tree, name ?? chosen ?? this.spot),
      });
      box.scrollLeft = scrolled[side] ?? box.scrollWidth; // at first the classes, where a screen is too narrow for all
      if (side === inside) box.querySelector(`[data-capsule="${focused}"]`)?.focus({ preventScroll: true });
    });
    if (chosen || !state.capsule) this.patches.mark(answer.sides[over].tree, chosen ?? this.spot);
  }

  // A capsule in words.
  tell([, layer, capsule]) {
    const { layers, class_names, names } = this.facts;
    if (layer === layers.length - 1) return `${class_names[capsule]}, a class capsule`;
    const name = names[`${layer}.${capsule}`];
    return `${layers[layer].name}, capsule ${capsule}${name ? `: ${name}` : ""}`;
  }

  isOff(capsule) {
    return state.off.some((each) => sameCapsule(each, capsule));
  }
}

const one = (name) => `${/^([aeiou8]|1[18]$)/i.test(name) ? "an" : "a"} ${name}`;

// Whether a class capsule is; of a network without trees there is nothing to say.
const isActive = ({ tree }) => !tree || tree.layers.at(-1).activations.some((length) => length > tree.tau);

// The largest change of a pixel, never less than it was: the attack's own radius where it comes that far.
const outward = (largest, eps) => (largest > eps - 1e-4 ? eps : Math.ceil(1000 * largest) / 1000);

// The first sentence tells what the badge says already.
const tail = (words) => words.slice(words.indexOf(". ") + 2);

// The capsules that changed, "1.4" say.
function movedOf(changed) {
  return (changed?.layers ?? []).flatMap(({ moved, appeared, vanished }, layer) =>
    [...moved.map(([capsule]) => capsule), ...appeared, ...vanished].map((capsule) => `${layer}.${capsule}`));
}

// What turning, shifting and so on did to the tree.
function tellChange({ layers, predicted: [before, now] }, names) {
  const many = (count, word) => `${count} capsule${count === 1 ? "" : "s"} ${word}`;
  const sum = (kind) => layers.reduce((total, { counts }) => total + counts[kind], 0);
  const parents = layers.filter(({ counts }) => counts.moved).map(({ name, counts }) => `${counts.moved} ${name}`).join(", ");
  const answer = before === now ? `It is still taken for ${names[now]}.` : `Unchanged it is taken for ${names[before]}.`;
  return `By the change ${many(sum("moved"), "chose another parent")}${parents ? ` (${parents})` : ""}, ${sum("appeared")} appeared and ${sum("vanished")} vanished. ${answer}`;
}
