// The guided story: six steps for people who have never heard of capsules. Each acts on the page itself, and at the end
// the page is as it was before. It is a part of the page like any other: nothing is locked while it is open.

import { byId, make } from "./make.js";
import { isOver } from "./over.js";
import { strongest } from "./patches.js";
import { CHANGES, isBlank, state } from "./state.js";
import { FAILED, LAST_ALONE, NO_IMAGE, TITLES, agree, alone, attack, broken, holds, tree, vote } from "./story-words.js";

const SURE = 0.6; // a score from which an image is good enough to tell the story with
const TRIED = 12, PATIENCE = 3000; // test images to look for one in, and milliseconds
const ROUND = 900; // milliseconds for which a round of routing is on show

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// hooks: samples(), the test images to choose from; show(), which asks anew and waits; redraw(); restore(state); failed(error).
export class Story {
  constructor(networks, hooks) {
    [this.networks, this.hooks] = [networks, hooks];
    this.titles = networks.length > 1 ? TITLES : [...TITLES.slice(0, -1), LAST_ALONE];
    this.main = networks.find(({ facts }) => facts.trees);
    [this.box, this.opener] = [byId("story"), byId("story-open")];
    this.opener.hidden = !this.main;
    this.turn = 0; // of the last step asked for: what an older one still does is not shown
    this.at = null;
    this.opener.addEventListener("click", () => (this.at === null ? this.open() : this.leave()));
    byId("story-next").addEventListener("click", () => (this.at + 1 < this.titles.length ? this.go(this.at + 1) : this.leave()));
    byId("story-back").addEventListener("click", () => this.go(this.at - 1));
    byId("story-leave").addEventListener("click", () => this.leave());
    byId("story-dots").replaceChildren(...this.titles.map((title, step) => make("li", {},
      make("button", { type: "button", "aria-label": `Step ${step + 1}: ${title}`, onclick: () => this.go(step) }))));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.at !== null && !isOver()) this.leave();
    });
    this.box.addEventListener("keydown", (event) => {
      const step = this.at + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0);
      if (step === this.at || !this.titles[step]) return;
      event.preventDefault();
      this.go(step);
    });
  }

  open() {
    this.before = structuredClone(state);
    this.own = state.image; // the image on show that nobody but the story has chosen
    this.found = new Map();
    this.chosen = false;
    this.box.hidden = false;
    document.documentElement.classList.add("telling");
    this.opener.setAttribute("aria-expanded", "true");
    byId("story-next").focus();
    return this.go(0);
  }

  // Gives the page back as it was; an image that somebody drew or chose in between is kept.
  leave({ restore = true } = {}) {
    if (this.at === null) return;
    this.turn++;
    this.at = null;
    this.mark();
    this.main.spot = null;
    const inside = this.box.contains(document.activeElement) || document.activeElement === document.body;
    this.box.hidden = true;
    document.documentElement.classList.remove("telling");
    this.opener.setAttribute("aria-expanded", "false");
    if (inside) this.opener.focus();
    if (restore) this.hooks.restore(state.image === this.own ? this.before : { ...this.before, image: state.image });
  }

  async go(step) {
    if (step < 0) return;
    const turn = ++this.turn;
    this.at = step;
    this.main.spot = null;
    byId("story-title").textContent = `${step + 1} of ${this.titles.length}: ${this.titles[step]}`;
    byId("story-text").textContent = "…";
    byId("story-back").disabled = step === 0;
    byId("story-next").textContent = step + 1 < this.titles.length ? "Next" : "Finish";
    [...byId("story-dots").children].forEach((dot, place) => (place === step ? dot.firstElementChild.setAttribute("aria-current", "step") : dot.firstElementChild.removeAttribute("aria-current")));
    this.box.setAttribute("aria-busy", "true");
    try {
      const words = await [this.vote, this.agree, this.tree, this.attack, this.broken, this.last][step].call(this, () => turn === this.turn);
      if (turn === this.turn) byId("story-text").textContent = words;
    } catch (error) {
      if (turn !== this.turn) return;
      byId("story-text").textContent = FAILED;
      if (error.name !== "AbortError") this.hooks.failed(error);
    } finally {
      if (turn === this.turn) this.box.removeAttribute("aria-busy");
    }
  }

  // The page as a step wants it: unchanged but for these; then the network's answer, or null where there is no image.
  async put(wanted) {
    const plain = { eps: 0, target: null, attack: "pgd", side: "attacked", why: false, step: null, capsule: null, off: [], change: Object.fromEntries(CHANGES.map((name) => [name, 0])) };
    Object.assign(state, plain, wanted);
    await this.hooks.show();
    return state.image && !isBlank(state.image) ? this.main.answer : null;
  }

  // The parts of the page that a step is about.
  mark(...parts) {
    document.querySelectorAll(".told").forEach((each) => each.classList.remove("told"));
    for (const part of parts) part?.classList.add("told");
    const [first] = parts;
    const narrow = matchMedia("(max-width: 42rem)").matches;
    const { top = 0 } = first?.getBoundingClientRect() ?? {};
    if (narrow || top < 0 || top > 0.7 * innerHeight) first?.scrollIntoView({ block: "start", behavior: still() ? "auto" : "smooth" });
  }

  get names() {
    return this.main.facts.class_names;
  }

  // An image that every network gets right and is sure of, else the surest, else what is on show.
  async choose(now) {
    this.chosen = true;
    const until = performance.now() + PATIENCE;
    let [best, most] = [state.image, -1];
    for (const { sample } of this.hooks.samples().slice(0, TRIED)) {
      this.own = state.image = { sample };
      await this.put({});
      if (!now()) return;
      const worth = Math.min(...this.networks.map(({ answer }) => (answer.label === null || answer.label === answer.predicted ? answer.scores[answer.predicted] : 0)));
      if (worth > most) [best, most] = [state.image, worth];
      if (most >= SURE || performance.now() > until) break;
    }
    this.own = state.image = best;
  }

  async vote(now) {
    if (!this.chosen) await this.choose(now);
    if (!now()) return "";
    const answer = await this.put({});
    if (!answer || !now()) return NO_IMAGE;
    const top = answer.tree.layers.length - 1;
    const primary = strongest(answer.tree, top, answer.predicted);
    this.main.spot = primary === null ? null : `0.${primary}`;
    this.hooks.redraw();
    this.mark(document.querySelector(".pad"), this.main.pair);
    return vote({ names: this.names, label: answer.label });
  }

  async agree(now) {
    const rounds = this.main.facts.iterations ?? 1;
    const answer = await this.put({ step: still() || rounds === 1 ? null : 1 });
    if (!answer || !now()) return NO_IMAGE;
    this.mark(this.main.pair, byId("steps"));
    const play = (round) => {
      if (!now()) return;
      state.step = round < rounds ? round : null;
      this.hooks.redraw();
      if (round < rounds) setTimeout(play, ROUND, round + 1);
    };
    if (state.step !== null) setTimeout(play, ROUND, 2);
    const hidden = answer.tree.layers.at(-2);
    return agree({ rounds, active: hidden.activations.filter((one) => one > state.tau).length, of: hidden.activations.length });
  }

  async tree(now) {
    const answer = await this.put({ why: true });
    if (!answer || !now()) return NO_IMAGE;
    this.mark(this.main.element, this.main.scores);
    return tree({ names: this.names, clean: answer.sides[0], label: answer.label });
  }

  async attack(now) {
    const { eps } = this.main.facts;
    const answer = await this.put({ eps });
    if (!answer || !now()) return NO_IMAGE;
    const [clean, attacked] = answer.sides;
    this.mark(byId("attacked"), byId("attack").querySelector(".slider"), this.main.scores);
    return attack({ names: this.names, clean, attacked, eps });
  }

  // The smallest eps that breaks each network, and the one that breaks first.
  async search(now) {
    for (const network of this.networks) {
      if (this.found.get(network)?.image === state.image) continue;
      this.found.set(network, { image: state.image, ...(await network.weakest(this.main.facts.eps)) });
      if (!now()) return null;
    }
    const breaks = (network) => this.found.get(network).eps ?? Infinity;
    return this.networks.reduce((weaker, other) => (breaks(other) < breaks(weaker) ? other : weaker));
  }

  async broken(now) {
    if (!(await this.put({})) || !now()) return NO_IMAGE;
    byId("story-text").textContent = "Looking for the weakest attack that works …";
    const weaker = await this.search(now);
    if (!weaker) return "";
    const found = this.found.get(weaker);
    await this.put({ eps: found.eps ?? found.most });
    if (!now()) return "";
    this.mark(weaker.shots, weaker.scores, weaker.pair);
    const changed = (weaker.answer.changed?.layers ?? []).reduce((sum, { moved, appeared, vanished }) => sum + moved.length + appeared.length + vanished.length, 0);
    return broken({ names: this.names, attacked: weaker.answer.sides[1], found, changed, called: this.networks.length > 1 ? weaker.facts.name : null });
  }

  async last(now) {
    if (!state.image || isBlank(state.image)) return NO_IMAGE;
    if (this.networks.length < 2) return this.alone(now);
    const weaker = await this.search(now);
    if (!weaker) return "";
    const stronger = this.networks.find((each) => each !== weaker);
    const { eps, most } = this.found.get(weaker);
    await this.put({ eps: eps ?? most });
    if (!now()) return "";
    this.mark(stronger.shots, stronger.scores, stronger.pair);
    const { facts, answer: { sides: [clean, attacked] } } = stronger;
    const own = this.found.get(stronger);
    // What the search found by halving gives way to what is on show.
    const found = attacked.predicted === clean.predicted ? own : { ...own, eps: Math.min(own.eps ?? eps, eps) };
    const trained = facts.under_attack ? ", trained under attack," : "";
    return holds({ names: this.names, weaker: weaker.facts.name, stronger: facts.name, trained, clean, attacked, eps, found });
  }

  async alone(now) {
    const { eps, given, under_attack: underAttack } = this.main.facts;
    const answer = await this.put({ eps: underAttack ? eps : state.eps });
    if (!answer || !now()) return NO_IMAGE;
    const [clean, attacked = clean] = answer.sides;
    this.mark(this.main.shots, this.main.scores, byId("attack").querySelector(".slider"));
    return alone({ names: this.names, clean, attacked, eps, given, underAttack });
  }
}
