// An input that activates one capsule: the improved search of gammacaps.explain.activate, with random numbers of its own.

import { fixed, four, largest } from "./numbers.js";
import { png } from "./pictures.js";
import { normal, uniform } from "./random.js";

const GREYS = [0, 0.15, 0.3, 0.45]; // on which faint noise lies at the start
const SMOOTHED = 2, KEPT = 0.8, PRICE = 0.2; // as in steady.py
const STILL_ACTIVE = 0.9, ALIKE = 0.5;

// numbers: starts, steps, noise, penalty, class_penalty, best, step, first, last, words.
export async function generated(model, layer, capsule, numbers, tick) {
  const { shape } = model, size = shape.image_shape.reduce((product, side) => product * side);
  const draw = uniform(1 + layer * 65536 + capsule), gauss = normal(draw);
  const top = layer === shape.layers.length - 1, penalty = top ? numbers.class_penalty : numbers.penalty;
  const lengthBy = (image) => model.parse(image).lengths[layer][capsule];
  let images = Array.from({ length: numbers.starts }, (_, n) => Float32Array.from({ length: size }, () => GREYS[n % GREYS.length] + 0.1 * draw()));
  const means = images.map(() => new Float32Array(size));
  for (let k = 0; k < numbers.steps; k++) {
    const share = k / Math.max(1, numbers.steps - 1), length = numbers.step * (numbers.first + (numbers.last - numbers.first) * share);
    const [down, right] = [0, 0].map(() => Math.floor(3 * draw()) - 1);
    for (const [n, image] of images.entries()) {
      await tick(k, numbers.steps);
      const disturbed = image.map((value) => value + numbers.noise * gauss());
      const active = model.parse(rolled(disturbed, shape.image_shape, down, right)).lengths[layer][capsule];
      const slope = model.slope(layer, [[capsule, 2 * (active - 1)]]);
      const gradient = ofOneSize(smoothed(rolled(slope, shape.image_shape, -down, -right), shape.image_shape));
      const mean = means[n];
      for (let at = 0; at < size; at++) {
        mean[at] = KEPT * mean[at] + (1 - KEPT) * gradient[at];
        image[at] = Math.min(1, Math.max(0, image[at] - length * (mean[at] + PRICE * share)));
      }
    }
  }
  const found = images.map((image) => ({ image, reached: lengthBy(image) }));
  for (const one of found) one.loss = (one.reached - 1) ** 2 + penalty * one.image.reduce((sum, value) => sum + value, 0);
  const best = found.sort((a, b) => a.loss - b.loss).slice(0, Math.min(numbers.best, numbers.starts));
  const meanOf = (count) => best[0].image.map((_, at) => best.slice(0, count).reduce((sum, { image }) => sum + image[at], 0) / count);
  // No more of them than those by whose mean the capsule is still active.
  const lengths = best.map((_, n) => lengthBy(meanOf(n + 1)));
  const mean = meanOf(lengths.findLastIndex((each) => each >= STILL_ACTIVE * lengths[0]) + 1);
  const empty = lengthBy(new Float32Array(size)), parse = model.parse(mean);
  return {
    png: png(mean, shape.image_shape), activation: four(parse.lengths[layer][capsule]),
    best: best.map(({ image, reached }) => ({ png: png(image, shape.image_shape), activation: four(reached) })),
    empty: four(empty), scores: Array.from(parse.scores, four), predicted: largest(parse.scores),
    features: features(best.map(({ image }) => image)), starts: numbers.starts, steps: numbers.steps, search: numbers.search, words: numbers.words,
  };
}

function rolled(values, [channels, rows, columns], down, right) {
  const moved = new Float32Array(values.length);
  for (let c = 0; c < channels; c++) {
    for (let y = 0; y < rows; y++) {
      for (let x = 0; x < columns; x++) moved[(c * rows + ((y + down + rows) % rows)) * columns + ((x + right + columns) % columns)] = values[(c * rows + y) * columns + x];
    }
  }
  return moved;
}

// Each pixel's weighted mean with its neighbours (1 2 1 each way), edges continued.
function smoothed(values, [channels, rows, columns]) {
  for (let n = 0; n < SMOOTHED; n++) {
    for (const [step, count] of [[1, columns], [columns, rows]]) {
      const from = values;
      values = from.map((value, at) => {
        const place = Math.floor(at / step) % count;
        return 0.25 * (place > 0 ? from[at - step] : value) + 0.5 * value + 0.25 * (place < count - 1 ? from[at + step] : value);
      });
    }
  }
  return values;
}

function ofOneSize(gradient) {
  const size = Math.sqrt(gradient.reduce((sum, value) => sum + value * value, 0) / gradient.length);
  return size > 0 ? gradient.map((value) => value / size) : gradient.fill(0);
}

function correlation(one, other) {
  const [x, y] = [one, other].map((image) => {
    const mean = image.reduce((sum, value) => sum + value, 0) / image.length;
    return Float64Array.from(image, (value) => value - mean);
  });
  const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);
  const size = Math.sqrt(dot(x, x) * dot(y, y));
  if (size > 1e-9) return dot(x, y) / size;
  return one.every((value, k) => Math.abs(value - other[k]) < 1e-9) ? 1 : 0;
}

// One feature or several: the best images in groups, within which each is like another.
export function features(images) {
  const between = images.map((one) => images.map((other) => correlation(one, other)));
  const groups = [], left = new Set(images.keys());
  while (left.size) {
    const group = new Set(), edge = [Math.min(...left)];
    while (edge.length) {
      const at = edge.pop();
      group.add(at);
      left.delete(at);
      edge.push(...[...left].filter((k) => between[at][k] >= ALIKE));
    }
    groups.push([...group].sort((a, b) => a - b));
  }
  groups.sort((a, b) => b.length - a.length || a[0] - b[0]);
  const count = images.length, pairs = between.flatMap((row, k) => row.filter((_, j) => j !== k));
  const mean = count > 1 ? pairs.reduce((sum, value) => sum + value, 0) / pairs.length : 1, told = `(mean correlation ${fixed(mean, 2)}).`;
  const meaning = groups.length === 1 ? `One feature: the ${count} best images are alike ${told}`
    : groups.length === count ? `No common feature: no two of the ${count} best images are alike ${told}`
      : `${groups.length} features: the ${count} best images fall into groups ${told}`;
  return { correlation: four(mean), groups, meaning };
}
