// A network of capsules: an image's parse, and the gradient of any capsules with respect to the image.

import { Convolution, Pooling } from "./convolution.js";
import { Routing, lengthOf, squash, squashGradient } from "./routing.js";

export class Model {
  // shape: as the page's data has it; take(count) gives the next weights.
  constructor(shape, take, products, Real = Float32Array) {
    this.shape = shape;
    const [channels, rows, columns] = shape.image_shape;
    let from = { channels, rows, columns, stride: rows * columns };
    const convolution = (layer) => {
      const weight = take(layer.filters * layer.channels * layer.kernel ** 2);
      const made = new Convolution(layer, weight, take(layer.filters), from, products, Real);
      from = { channels: made.size, rows: made.rows, columns: made.columns, stride: made.stride };
      return made;
    };
    const pooling = () => {
      const made = new Pooling(from, Real);
      from = { channels: made.size, rows: made.rows, columns: made.columns, stride: made.stride };
      return made;
    };
    this.encoder = shape.encoder.map((layer) => (layer.kind === "pooling" ? pooling() : convolution(layer)));
    this.last = convolution(shape.primary);
    this.size = shape.primary.size;
    this.routed = shape.routed.map((layer) => {
      const { lower, upper, lower_size: d, upper_size: D } = layer;
      return new Routing(layer, take(lower * d * upper * D), layer.bias ? take(upper * D) : null, Real);
    });
    const entries = this.last.size * this.last.area;
    [this.entries, this.primary, this.gradient] = [new Real(entries), new Real(entries), new Real(entries)];
    this.spread = new Real(this.last.size * this.last.stride); // a gradient as the convolution has it
    this.sizes = [this.size, ...shape.routed.map((layer) => layer.upper_size)];
    this.Real = Real;
  }

  // Calls act(entry of the capsules, entry of the convolution): channels are neighbours in a capsule.
  eachEntry(act) {
    const { size: filters, area, stride } = this.last;
    for (let place = 0, k = 0; place < area; place++) for (let f = 0; f < filters; f++, k++) act(k, f * stride + place);
  }

  // All layers' poses, lengths and couplings by iterations, until the next pass. `off`: [layer, capsule] each, switched off.
  parse(image, off = [], iterations = undefined) {
    this.off = off;
    let values = image;
    for (const layer of [...this.encoder, this.last]) values = layer.forward(values);
    this.eachEntry((k, at) => (this.entries[k] = values[at]));
    squash(this.entries, this.primary, this.size);
    const poses = [this.silenced(0, this.primary)];
    for (const [l, layer] of this.routed.entries()) poses.push(this.silenced(l + 1, layer.forward(poses[l], iterations)));
    const lengths = poses.map((each, l) => Float32Array.from({ length: each.length / this.sizes[l] }, (_, i) => lengthOf(each, i * this.sizes[l], this.sizes[l])));
    this.poses = poses;
    return { poses, lengths, scores: lengths.at(-1), couplings: this.routed.map((layer) => layer.couplings.slice(0, layer.iterations)) };
  }

  silenced(layer, poses) {
    const size = this.sizes[layer];
    for (const [l, capsule] of this.off) if (l === layer) poses.fill(0, capsule * size, (capsule + 1) * size);
    return poses;
  }

  // The gradient at the image of the sum over capsules of a layer of weight x length, after the pass that was last made.
  slope(layer, weights) {
    const size = this.sizes[layer], poses = this.poses[layer];
    let gradient = new this.Real(poses.length);
    for (const [capsule, weight] of weights) {
      const length = lengthOf(poses, capsule * size, size);
      if (length > 0) for (let e = capsule * size; e < (capsule + 1) * size; e++) gradient[e] += (weight * poses[e]) / length;
    }
    for (let l = layer; l > 0; l--) gradient = this.routed[l - 1].backward(this.silenced(l, gradient));
    squashGradient(this.entries, this.silenced(0, gradient), this.gradient, this.size);
    this.eachEntry((k, at) => (this.spread[at] = this.gradient[k]));
    let values = this.spread;
    for (const part of [this.last, ...this.encoder.toReversed()]) values = part.backward(values);
    return values;
  }
}
