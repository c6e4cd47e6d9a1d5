// What a capsule stands for: an input generated for it, real images, the classes that make it long, the audit's word.

import { Latest, follow, get } from "./ask.js";
import { badge, bars, byId, make, radius, two } from "./make.js";
import { state } from "./state.js";

const VERDICTS = { "gamma-capsule": "pass", "non-robust": "warn", "not useful": "fail", dead: "skip" };
const SOME = 0.1, FELL_SHORT = 0.5; // as in the report
const EMPTY = 0.9; // of the length reached: a capsule that is so long without any image looks for nothing
const MEANS = {
  "gamma-capsule": "It says something about the class, and no attack that was tried could take that away.",
  "non-robust": "It says something about the class, but an attack can make it lie.",
  "not useful": "Whether it is active says nothing about the class.",
  dead: "It was active in none of the images of the audit.",
};

export class CapsulePanel {
  constructor(networks, hooks) {
    [this.networks, this.hooks] = [networks, hooks];
    this.latest = new Latest();
    this.shown = null;
    this.start = byId("capsule-body").innerHTML;
  }

  get data() {
    return this.shown && { capsule: this.shown, ...this.found };
  }

  // Shows the chosen capsule; what is on show already stays.
  async update() {
    const chosen = state.capsule;
    const network = chosen && this.networks[chosen[0]];
    const layer = network?.facts.layers[chosen[1]];
    if (!layer || chosen[2] >= layer.capsules) {
      this.latest.stop();
      this.shown = null;
      byId("capsule-title").textContent = "A capsule";
      byId("capsule-title").hidden = false;
      byId("capsule-body").innerHTML = this.start;
      return;
    }
    if (String(chosen) !== String(this.shown)) await this.open(network, chosen);
    else this.showSwitch();
  }

  async open(network, chosen) {
    const signal = this.latest.next();
    [this.shown, this.found, this.network] = [chosen, {}, network];
    const [place, layer, capsule] = chosen;
    byId("capsule-title").hidden = true;
    this.switch = make("button", { type: "button", onclick: () => this.hooks.toggle(chosen) });
    const close = make("button", { type: "button", onclick: () => this.hooks.close() }, "Close");
    const name = network.tell(chosen);
    const where = this.networks.length > 1 ? make("span", { class: "where" }, `of ${network.facts.name}`) : "";
    const top = layer === network.facts.layers.length - 1;
    const [generated, real, serves, audit] = ["generated", "real", "serves-box", "audit"].map((kind) => make("div", { class: kind }));
    byId("capsule-body").replaceChildren(
      make("div", { class: "title-line" }, make("h2", {}, name[0].toUpperCase() + name.slice(1)), where, top ? "" : this.switch, close),
      make("div", { class: "panel" }, generated, real, serves, audit));
    this.showSwitch();
    const waiting = make("p", { class: "note" }, "Looking through the test images …");
    real.append(make("h3", {}, "Real images that activate it most"), waiting);
    const query = `network=${place}&layer=${layer}&capsule=${capsule}`;
    const tries = [
      get(`/api/capsule?${query}`, signal).then((found) => {
        Object.assign(this.found, found);
        waiting.remove();
        this.showReal(real, serves, found);
        this.showShort();
        this.showAudit(audit, found.audit);
      }),
      this.generate(generated, { network: place, layer, capsule }, signal),
    ];
    for (const each of tries) each.catch((error) => error.name !== "AbortError" && !signal.aborted && this.hooks.failed(error));
    await Promise.allSettled(tries);
  }

  showSwitch() {
    const off = this.network.isOff(this.shown);
    this.switch.textContent = off ? "Switch it on again" : "Switch it off";
    this.switch.setAttribute("aria-pressed", String(off));
  }

  async generate(box, body, signal) {
    const bar = make("progress", { "aria-label": "Progress of the generated input" });
    box.replaceChildren(make("h3", {}, "What it looks for"), make("div", { class: "blank" }, "Generating an input that activates it …", bar));
    const found = await follow("/api/activate", body, signal, (done, of) => {
      if (of) [bar.max, bar.value] = [of, done];
    });
    this.found.generated = found;
    const names = this.network.facts.class_names;
    const order = found.scores.map((_, place) => place).sort((a, b) => found.scores[b] - found.scores[a]);
    const told = order.slice(0, 3).filter((place, rank) => rank === 0 || found.scores[place] > SOME).map((place) => `${names[place]} (${two(found.scores[place])})`);
    this.short = make("span");
    box.replaceChildren(
      make("h3", {}, "What it looks for"),
      make("div", {},
        make("img", { src: found.png, alt: `Input generated for this capsule; length ${two(found.activation)}` }),
        make("div", { class: "best" }, ...found.best.map(({ png, activation }) => make("img", { src: png, title: two(activation), alt: `One of those that it is the mean of; length ${two(activation)}` })))),
      make("p", {}, `Here ${found.words}, until the capsule was as long as could be. The best of `, String(found.starts), " starts, the small images, reach ",
        make("strong", {}, two(found.best[0].activation)), ", their mean, the large one, ", make("strong", {}, two(found.activation)), ". ", this.short, found.empty > EMPTY * found.best[0].activation ? `A black image makes it ${two(found.empty)} long too: it is on until something switches it off. ` : "",
        `The classes that this input activates most: ${told.join(", ")}. ${found.features.meaning}`));
    this.showShort();
  }

  // A real image may do far better than the search, whose picture then says little.
  showShort() {
    const longest = this.found.examples?.[0]?.activation ?? 0;
    if (this.found.generated && Math.max(...this.found.generated.best.map(({ activation }) => activation)) < FELL_SHORT * longest) this.short.textContent = `The search fell short: a test image makes it ${two(longest)} long. `;
  }

  showReal(real, serves, found) {
    const names = this.network.facts.class_names;
    if (!found.examples.length) {
      real.append(make("p", { class: "missing" }, this.network.facts.missing));
      return;
    }
    real.append(make("ul", { class: "strongest" }, ...found.examples.map(({ sample, looks, activation, label }) =>
      make("li", {}, make("button", { type: "button", title: "Put this image to the network", onclick: () => this.hooks.pick(sample) },
        make("img", { src: looks, alt: "" }), ...(label === null ? [] : [names[label], make("br")]), two(activation))))));
    real.append(make("p", { class: "note" }, "Orange: where its length depends on the image most."));
    if (!found.serves) return;
    const rows = found.serves.classes.map((k, place) => ({ name: names[k], value: found.serves.means[place], top: found.serves.serves.includes(k) }));
    rows.sort((a, b) => b.value - a.value);
    serves.append(make("h3", {}, "Classes that make it long"), bars(rows.slice(0, 12), "Its mean length over the images of each class"),
      make("p", { class: "note" }, `Its mean length over the images of each class. ${tellServed(rows)}`));
    if (found.without) serves.append(make("p", { class: "without" }, tellWithout(found.without, names)));
  }

  showAudit(box, row) {
    box.append(make("h3", {}, "Is it a gamma-capsule?"));
    if (!row) {
      const audited = this.network.facts.audit;
      const words = audited ? "The audit did not look at this capsule." : "Not audited yet. Run ";
      box.append(make("p", { class: "missing" }, words, audited ? "" : make("code", {}, `gammacaps audit ${this.network.facts.given}`), audited ? "" : " and start the explorer again."));
      return;
    }
    const names = this.network.facts.class_names;
    const fact = (name, value, note) => make("div", {}, make("dt", {}, name), make("dd", {}, value, note ? make("small", {}, note) : ""));
    const gamma = row.gamma ? row.eps.map((eps, place) => fact(`gamma at eps ${radius(eps)}`, two(row.gamma[place]))) : [];
    box.append(badge(VERDICTS[row.kind], row.kind), make("p", { class: "note" }, MEANS[row.kind]),
      make("dl", { class: "facts" },
        fact("rho", two(row.rho), `${two(row.chance)} is what luck gives`), ...gamma,
        fact("active in", `${Math.round(100 * row.active)}% of images`, `longer than ${row.tau}`),
        speaks(row, names, fact)));
  }
}

// The classes that a capsule speaks for: their name, and below it the classes one by one where the name does not tell.
function speaks(row, names, fact) {
  const each = row.classes.map((k) => names[k]).join(", ");
  return fact("speaks for", row.classes.length ? row.name : "none", row.classes.length > 1 ? each : "");
}

// lost: the classes that suffer most when it is switched off, with the shares that are right.
function tellWithout(lost, names) {
  if (!lost.length) return "Switched off, it is missed by no class: as many of the test images are right.";
  const percent = (share) => `${Math.round(100 * share)}%`;
  const told = lost.map((one) => `${names[one.class]} ${percent(one.before)} → ${percent(one.without)}`);
  return `Switched off, these classes suffer most (how many of their test images are right): ${told.join(", ")}.`;
}

// rows: classes with their mean lengths, the largest first; top: it serves this one.
function tellServed(rows) {
  const others = rows.filter((row) => !row.top).map((row) => row.name);
  const served = rows.length - others.length;
  if (served === 0) return `About as ${rows[0].value < 0.5 ? "short" : "long"} for every class, it tells none from another.`;
  return `It serves the classes in bold${others.length < 4 && others.length < served ? `: all but ${others.join(", ")}` : ""}.`;
}
