// Attacks within a largest change of a pixel (L-inf), with the server's numbers, starts and order of sums.

import { largest } from "./numbers.js";
import { uniform } from "./random.js";

const single = Math.fround;
const word = new Float32Array(1), bits = new Int32Array(word.buffer);

// The next number of the format from `value` (of an image, not negative) towards `to`.
function next(value, to) {
  word[0] = value;
  bits[0] += to > value ? 1 : -1;
  return word[0];
}

// What an attack may make of each pixel: |bound - pixel| <= eps as computed, within [0, 1].
function bounds(image, eps) {
  const most = single(eps);
  const low = image.map((value) => Math.max(0, value - most)), high = image.map((value) => Math.min(1, value + most));
  return {
    low: low.map((bound, k) => (single(image[k] - bound) > most ? next(bound, image[k]) : bound)),
    high: high.map((bound, k) => (single(bound - image[k]) > most ? next(bound, image[k]) : bound)),
  };
}

const clamped = (points, { low, high }) => points.map((value, k) => Math.min(high[k], Math.max(low[k], value)));

function start(image, eps, ball, draw) {
  return clamped(image.map((value) => value + single(single(2 * draw() - 1) * single(eps))), ball);
}

// The best other class than this one.
const rival = (scores, label) => largest(Float32Array.from(scores, (score, k) => (k === label ? -Infinity : score)));

// how: {steps, step (at eps 1), iterations, random}. Gives the attacked image; `tick` is waited for before each pass.
async function climbed(model, image, { off, label, target, eps }, how, seed, tick) {
  const ball = bounds(image, eps), length = single(how.step * eps), last = model.shape.layers.length - 1;
  let points = how.random ? start(image, eps, ball, uniform(seed)) : image;
  for (let k = 0; k < how.steps; k++) {
    await tick(k);
    const { scores } = model.parse(points, off, how.iterations);
    const goal = target ?? label, other = rival(scores, goal), towards = target === null ? 1 : -1;
    const gradient = model.slope(last, [[other, towards], [goal, -towards]]);
    points = clamped(points.map((value, at) => value + length * (Math.sign(gradient[at]) || 0)), ball);
  }
  return points;
}

// The worst of so many random changes, by turns uniform and in the corners.
async function noise(model, image, { off, label, eps }, { steps }, seed, tick) {
  const ball = bounds(image, eps), draw = uniform(seed);
  const margin = ({ scores }) => single(scores[rival(scores, label)] - scores[label]);
  await tick(0);
  let result = image, worst = margin(model.parse(image, off));
  for (let k = 0; k < steps; k++) {
    await tick(k + 1);
    let points = start(image, eps, ball, draw);
    if (k % 2) points = points.map((value, at) => (value < image[at] ? ball.low[at] : ball.high[at]));
    const value = margin(model.parse(points, off));
    if (value > worst) [result, worst] = [points, value];
  }
  return result;
}

// asked: {attack, eps, off, label, target or null, coarse}; numbers: what the page's data says of attacks.
export async function attacked(model, image, asked, numbers, tick) {
  if (asked.eps === 0) return image;
  const own = numbers.attacks[asked.attack], told = (done) => tick(Math.min(done, own.passes), own.passes);
  if (asked.attack === "noise") return noise(model, image, asked, own, numbers.seed, told);
  const how = { ...own, random: asked.attack !== "fgsm", iterations: asked.attack === "vote" ? 1 : undefined };
  if (asked.coarse && how.steps > numbers.coarse) [how.steps, how.step] = [numbers.coarse, 2 / numbers.coarse];
  return climbed(model, image, asked, how, numbers.seed, told);
}

// The radii that are tried, from 0 on, with this one among them.
function radiiWith(eps, { step, most }) {
  const own = Math.min(eps, most);
  const steps = Array.from({ length: Math.round(most / step) + 1 }, (_, k) => Number((k * step).toFixed(4)));
  return [own, ...steps.filter((one) => Math.abs(one - own) > step / 1000)].sort((a, b) => a - b);
}

// The smallest eps at which the attack succeeds, by halving; null where it never does. asked.eps is tried first.
export async function breaking(model, image, asked, numbers, tick) {
  const { most, tries } = numbers.breaking, { passes } = numbers.attacks[asked.attack];
  const before = largest(model.parse(image, asked.off).scores), radii = radiiWith(asked.eps, numbers.breaking);
  let tried = 0, best = before;
  const breaks = async (k) => {
    const first = tried++ * passes;
    const points = await attacked(model, image, { ...asked, label: before, eps: radii[k] }, numbers, (done) => tick(first + done, tries * passes));
    const answer = largest(model.parse(points, asked.off).scores);
    const broken = asked.target === null ? answer !== before : answer === asked.target;
    if (broken) best = answer;
    return broken;
  };
  const found = { attack: asked.attack, most };
  let low = 0, high = radii.indexOf(Math.min(asked.eps, most));
  if (!(await breaks(high))) {
    [low, high] = [high, radii.length - 1];
    if (low === high || !(await breaks(high))) return { ...found, eps: null, held: most, predicted: [before, before] };
  }
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (await breaks(middle)) high = middle;
    else low = middle;
  }
  return { ...found, eps: radii[high], held: radii[low], predicted: [before, best] };
}
