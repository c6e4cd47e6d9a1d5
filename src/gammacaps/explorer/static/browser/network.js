// One network of the page and all that may be asked about it: the server's answers, made in the browser.

import { attacked, breaking } from "./attacks.js";
import { changed } from "./changes.js";
import { drawTrees } from "./drawing.js";
import { generated } from "./generate.js";
import { tinted } from "./looks.js";
import { Model } from "./model.js";
import { four, largest } from "./numbers.js";
import { fromBase64, levels, png, toBase64 } from "./pictures.js";
import { difference, differenceJson, treeJson, treeOf, whatChanged } from "./trees.js";
import { why } from "./why.js";

const judged = (scores) => ({ scores: Array.from(scores, four), predicted: largest(scores) });

// Numbers that were stored as float32, float16, or as bytes of which 255 is 1.
export function unpacked({ kind, base64 }) {
  const { buffer } = fromBase64(base64);
  if (kind === "float32") return new Float32Array(buffer);
  if (kind === "uint8") return Float32Array.from(new Uint8Array(buffer), (level) => level / 255);
  return Float32Array.from(new Uint16Array(buffer), half);
}

function half(word) {
  const sign = word & 0x8000 ? -1 : 1, power = (word >> 10) & 31, rest = word & 1023;
  return sign * (power === 0 ? rest * 2 ** -24 : (1024 + rest) * 2 ** (power - 25));
}

export class Network {
  // data: what gammacaps.explorer.static.packing writes of a network; images: those to pick from, one after the other.
  constructor(data, images, products) {
    Object.assign(this, data);
    this.images = images;
    const weights = unpacked(data.weights);
    let at = 0;
    this.model = new Model(data.shape, (count) => weights.subarray(at, (at += count)), products);
    this.weights = null; // the model has them
    this.sets = new Map(data.class_sets);
    this.pixels = data.shape.image_shape.reduce((product, side) => product * side);
    this.made = new Map(Object.entries(data.made)); // inputs generated so far: those of the run's folder, then those of this page
  }

  sample(place) {
    return this.images.slice(place * this.pixels, (place + 1) * this.pixels);
  }

  image({ sample, pixels }) {
    return pixels === undefined ? this.sample(sample) : Float32Array.from(fromBase64(pixels), (level) => level / 255);
  }

  shown(image) {
    return { png: png(image, this.shape.image_shape), pixels: toBase64(levels(image)) };
  }

  label({ image }) {
    return image.sample !== undefined && this.facts.labelled ? this.labels[image.sample] : null;
  }

  // The trees of an image by routing's iterations, or its last alone, which then has no number.
  trees(image, { off, tau }, last = false) {
    const parse = this.model.parse(image, off), how = { tau, classNames: this.facts.class_names };
    const all = parse.couplings[0].map((_, k) => parse.couplings.map((layer) => layer[k]));
    if (last) return [treeOf(this.shape, parse, all.at(-1), how)];
    return all.map((couplings, k) => treeOf(this.shape, parse, couplings, how, k + 1));
  }

  drawn(images, { all }) {
    return drawTrees(images, { all, names: this.names, ...this.drawing });
  }

  why(tree) {
    return why(tree, this.names, this.sets);
  }

  parse(asked) {
    const original = this.image(asked.image), image = changed(original, this.shape.image_shape, asked.change);
    const trees = this.trees(image, asked, asked.last);
    const answer = { label: this.label(asked), ...this.shown(image), ...judged(trees.at(-1).scores) };
    if (asked.off.length) answer.before = judged(this.model.parse(image).scores);
    const before = asked.change ? [this.trees(original, asked, asked.last)] : [];
    answer.drawings = this.drawn([...before, trees], asked).slice(before.length);
    answer.tree = treeJson(trees.at(-1));
    answer.why = this.why(trees.at(-1));
    if (before.length) answer.changed = differenceJson(difference(before[0].at(-1), trees.at(-1)));
    return answer;
  }

  async attack(asked, tick) {
    const { eps, attack, target = null, off, coarse } = asked;
    const image = changed(this.image(asked.image), this.shape.image_shape, asked.change);
    const clean = judged(this.model.parse(image, off).scores);
    const points = await attacked(this.model, image, { attack, eps, off, coarse, target, label: clean.predicted }, this.numbers, tick);
    const wide = 2 * Math.max(eps, this.numbers.least_eps);
    const answer = {
      eps, attack, target, label: this.label(asked), clean: { ...this.shown(image), ...clean },
      attacked: { ...this.shown(points), ...judged(this.model.parse(points, off).scores) },
      difference: {
        png: png(points.map((value, k) => (value - image[k]) / wide + 0.5), this.shape.image_shape),
        magnified: eps ? Number((1 / (2 * eps)).toFixed(1)) : null,
        largest: four(points.reduce((most, value, k) => Math.max(most, Math.abs(value - image[k])), 0)),
      },
    };
    if (off.length) answer.before = judged(this.model.parse(image).scores);
    const trees = [image, points].map((each) => this.trees(each, asked).slice(coarse ? -1 : 0));
    const [first, second] = trees.map((each) => each.at(-1)), change = difference(first, second);
    answer.drawings = this.drawn(trees, asked);
    Object.assign(answer.clean, { tree: treeJson(first), why: this.why(first) });
    Object.assign(answer.attacked, { tree: treeJson(second), why: this.why(second) });
    return { ...answer, changed: differenceJson(change), words: whatChanged(first, change) };
  }

  breaking(asked, tick) {
    const image = changed(this.image(asked.image), this.shape.image_shape, asked.change);
    return breaking(this.model, image, { attack: asked.attack, eps: asked.eps ?? this.facts.eps, target: asked.target ?? null, off: asked.off }, this.numbers, tick);
  }

  capsule({ layer, capsule }) {
    const known = this.capsules[layer][capsule], { image_shape: shape } = this.shape;
    const examples = known.examples.map((one) => {
      const image = this.sample(one.sample);
      return { ...one, png: png(image, shape), looks: png(tinted(this.model, image, layer, capsule), [3, shape[1], shape[2]]) };
    });
    return { ...known, examples };
  }

  async activate({ layer, capsule }, tick) {
    const name = `${layer}.${capsule}`;
    if (!this.made.has(name)) this.made.set(name, await generated(this.model, layer, capsule, this.numbers.generated, tick));
    return this.made.get(name);
  }

  samples({ class: label, first = 0, count = 40 }) {
    const places = this.order.filter((place) => label === undefined || this.labels[place] === label);
    const samples = places.slice(first, first + count).map((sample) => ({ sample, label: this.label({ image: { sample } }), png: png(this.sample(sample), this.shape.image_shape) }));
    return { missing: this.facts.missing, note: this.note, source: this.source, total: places.length, samples };
  }
}
