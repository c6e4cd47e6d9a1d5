// Trees as SVG, as gammacaps.explorer.drawing draws them for the server.

import { LEFT, LONGEST, layOut } from "./layout.js";
import { even, fixed } from "./numbers.js";
import { activeIn, difference, inWords, tell } from "./trees.js";

const NEUTRAL = "currentColor", ON_STRONG = "gammacaps-on-strong";
const WIDEST = 7, FAINTEST = 0.02;

export const escaped = (words) => words.replace(/[&<>"']/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" })[letter]);

// Numbers no longer than can be seen.
function shown(value) {
  if (typeof value !== "number") return escaped(String(value));
  if (value >= 0 && value < 10) return String(even(100 * value) / 100);
  return value >= 10 ? fixed(value, 1).replace(/\.0$/, "") : String(Number(fixed(value, value <= -10 ? 1 : 2)) + 0);
}

function tag(name, attributes, inside = "", hover = "") {
  const words = Object.entries(attributes).map(([key, value]) => ` ${key}="${shown(value)}"`).join("");
  const content = (hover ? `<title>${escaped(hover)}</title>` : "") + inside;
  return content ? `<${name}${words}>${content}</${name}>` : `<${name}${words}/>`;
}

const text = (content, x, y, size, attributes = {}) => tag("text", { x, y, "font-size": size, fill: NEUTRAL, ...attributes }, escaped(content));
const level = (left, start, middle, right, end) => `M ${left} ${start} C ${middle} ${start} ${middle} ${end} ${right} ${end}`;

// For each image an SVG for each of its trees; from the second image on, what differs from the first is marked.
export function drawTrees(images, { all, names, palette, other, alone }) {
  const trees = images.flat(), layout = layOut(trees, all, names);
  const colour = (goal) => (goal === null || goal === undefined ? other : palette[goal % palette.length]);
  const edges = new Map(trees.map((tree) => [tree, tree.T.map((_, l) => bundles(tree, l, layout))]));
  const heavy = trees[0].T.map((_, l) => Math.max(1, ...trees.flatMap((tree) => edges.get(tree)[l].map(({ mass }) => mass))));
  const drawOne = (tree, change) => {
    const marks = change ? marksOf(change) : new Map();
    const inside = [];
    for (const [l, own] of edges.get(tree).entries()) {
      inside.push(...drawEdges(tree, l, layout, own, colour, heavy[l]));
      if (change) inside.push(...drawOldEdges(l, change.layers[l].moved, layout));
    }
    for (const [l, column] of layout.columns.entries()) inside.push(...drawCapsules(tree, l, column, colour, marks), ...drawHeading(tree, l, layout));
    inside.push(...drawClasses(tree, layout, colour));
    const [width, height] = [layout.width - LEFT, layout.height + 8];
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${[LEFT, 0, width, height].map(shown).join(" ")}" width="${shown(width)}" `
      + `style="max-width:100%;height:auto" font-family="system-ui, sans-serif" role="group" aria-label="${escaped(inWords(tree))}">${alone}${inside.join("")}</svg>`;
  };
  return images.map((each, place) => each.map((tree, n) => drawOne(tree, place ? difference(images[0][n], tree) : null)));
}

function marksOf({ layers }) {
  const marks = new Map();
  for (const [l, { moved, appeared, vanished }] of layers.entries()) {
    for (const [i] of moved) marks.set(`${l}.${i}`, "changed parent");
    for (const i of appeared) marks.set(`${l}.${i}`, "appeared");
    for (const i of vanished) marks.set(`${l}.${i}`, "vanished");
  }
  return marks;
}

// The edges from one place, or one capsule in a column, to one parent, or to the place of several; the heaviest first.
function bundles(tree, l, { columns }) {
  const grouped = new Map();
  for (const [index, { parent, coupling }] of tree.nodes[l]) {
    if (parent === null) continue;
    const goal = tree.ways.get(`${l}.${index}`);
    const key = `${columns[l].levels.get(index)} ${columns[l + 1].levels.get(parent)} ${goal}`;
    if (!grouped.has(key)) grouped.set(key, { goal, capsules: [], parents: [], mass: 0 });
    const bundle = grouped.get(key);
    bundle.capsules.push(index);
    if (!bundle.parents.includes(parent)) bundle.parents.push(parent);
    bundle.mass += coupling;
  }
  for (const { parents } of grouped.values()) parents.sort((a, b) => a - b);
  return [...grouped.values()].sort((a, b) => b.mass - a.mass);
}

function* drawEdges(tree, l, { columns }, own, colour, heaviest) {
  const [lower, upper] = [columns[l], columns[l + 1]];
  const [left, right, middle] = [lower.right, upper.left, (lower.right + upper.left) / 2].map(shown);
  const path = (capsule, parent) => level(left, shown(lower.levels.get(capsule)), middle, right, shown(upper.levels.get(parent)));
  for (const [index, node] of tree.nodes[l]) {
    for (const [parent, coupling] of (node.couplings ?? []).entries()) {
      if (coupling > FAINTEST && parent !== node.parent && upper.levels.has(parent)) {
        yield `<path d="${path(index, parent)}" fill="none" stroke="${NEUTRAL}" stroke-opacity="0.13" stroke-width="${shown(WIDEST * coupling)}"/>`;
      }
    }
  }
  for (const bundle of own) {
    const ends = [bundle.capsules.map((i) => `${l}.${i}`), bundle.parents.map((i) => `${l + 1}.${i}`)].map((each) => each.join(" "));
    yield `<path d="${path(bundle.capsules[0], bundle.parents[0])}" fill="none" data-from="${ends[0]}" data-to="${ends[1]}" stroke="${colour(bundle.goal)}" `
      + `stroke-opacity="${lower.cell ? 0.45 : 0.75}" stroke-width="${shown(Math.max(0.5, (WIDEST * bundle.mass) / heaviest))}"><title>${tellBundle(tree, l, bundle)}</title></path>`;
  }
}

function tellBundle(tree, l, { capsules, parents, mass }) {
  const who = capsules.length === 1 ? tell(tree, l, capsules[0]) : `${capsules.length} capsules of one place`;
  const to = parents.length === 1 ? tell(tree, l + 1, parents[0]) : `${parents.length} parents`;
  return `${escaped(who)} → ${escaped(to)}: coupling ${fixed(mass, 2)}${capsules.length > 1 ? " together" : ""}`;
}

// Dashed edges to the parents that capsules of a column had before.
function* drawOldEdges(l, moved, { columns }) {
  const [lower, upper] = [columns[l], columns[l + 1]];
  for (const [capsule, before] of lower.cell ? [] : moved) {
    if (before === null) continue;
    const [x0, y0, x1, y1] = [lower.right, lower.levels.get(capsule), upper.left, upper.levels.get(before)];
    const d = level(shown(x0), shown(y0), shown((x0 + x1) / 2), shown(x1), shown(y1));
    yield tag("path", { d, fill: "none", stroke: NEUTRAL, "stroke-opacity": 0.8, "stroke-width": 1.2, "stroke-dasharray": "3 4" });
  }
}

function* drawCapsules(tree, l, column, colour, marks) {
  const { grid: [rows, across], activations } = tree.layers[l];
  if (column.cell) {
    const side = column.cell - 2;
    for (let place = 0; place < rows * across; place++) {
      const [x, y] = [column.left + column.cell * (place % across) + 1, column.top + column.cell * Math.floor(place / across) + 1];
      yield tag("rect", { x, y, width: side, height: side, rx: 3, fill: "none", stroke: NEUTRAL, "stroke-opacity": 0.25 });
    }
  }
  for (const [capsule, spot] of column.spots) {
    const name = `${l}.${capsule}`, mark = marks.get(name) ?? "", strength = activations[capsule];
    const own = colour(tree.ways.get(name)), active = strength > tree.tau, known = column.names.get(capsule);
    const hover = `${tell(tree, l, capsule)}${known ? ` (${known.name})` : ""}: ${fixed(strength, 2)}${tellChoice(tree, l, tree.nodes[l].get(capsule))}${mark ? `, ${mark}` : ""}`;
    const drawn = mark === "vanished" ? cross(spot, column, hover)
      : column.cell ? dot(spot, column.radius, own, strength, active, mark, hover) : disc(spot, column.radius, own, strength, active, mark, capsule, hover);
    yield `<g data-capsule="${name}">${drawn}</g>`;
    if (column.names.size) yield named(name, [...beside(spot, column.radius, capsule, known)].join(""));
  }
}

// A capsule's name on its right, in two lines where there is room; faint where it is a number.
function* beside([x, y], r, capsule, known) {
  const lines = known ? (r > 8 ? known.two_lines : known.one_line) : [`capsule ${capsule}`];
  const top = y + 4 - 5.75 * (lines.length - 1);
  for (const [n, line] of lines.entries()) yield text(line, x + r + 6, top + 11.5 * n, 11.5, known ? {} : { "fill-opacity": 0.6 });
}

function tellChoice(tree, l, node) {
  if (!node || node.coupling === null) return "";
  const parent = node.parent === null ? "no parent" : tell(tree, l + 1, node.parent);
  return ` → ${parent} (coupling ${fixed(node.coupling, 2)}, next ${fixed(node.second, 2)})`;
}

function dot(spot, r, colour, strength, active, mark, hover) {
  if (!active) return shape(spot, 0.6 * r, mark, { fill: NEUTRAL, "fill-opacity": 0.15 }, hover);
  const line = mark === "changed parent" ? { stroke: NEUTRAL, "stroke-width": Math.min(1.2, 0.3 * r) } : {};
  return shape(spot, r, mark, { fill: colour, "fill-opacity": 0.3 + 0.7 * strength, ...line }, hover);
}

function disc(spot, r, colour, strength, active, mark, capsule, hover) {
  const moved = mark === "changed parent";
  const outline = { stroke: moved ? NEUTRAL : colour, "stroke-width": moved ? 2.5 : 1.5, ...(active ? {} : { "stroke-dasharray": "2 3", "stroke-opacity": 0.7 }) };
  const number = text(String(capsule), spot[0], spot[1] + 3.5, 10, { "text-anchor": "middle", "pointer-events": "none", ...(strength > 0.5 ? { class: ON_STRONG } : {}) });
  return shape(spot, r, mark, { fill: colour, "fill-opacity": 0.05 + 0.65 * strength, ...outline }, hover) + (r > 8 ? number : "");
}

function cross([x, y], column, hover) {
  const r = Math.min(column.radius, 6), two = (value) => fixed(value, 2);
  const d = `M ${two(x - r)} ${two(y - r)} l ${two(2 * r)} ${two(2 * r)} m 0 ${two(-2 * r)} l ${two(-2 * r)} ${two(2 * r)}`;
  return tag("path", { d, fill: "none", stroke: NEUTRAL, "stroke-width": column.cell ? 1 : 2, "stroke-opacity": 0.6 }, "", hover);
}

// A circle; a square for a capsule that appeared.
function shape([x, y], r, mark, attributes, hover) {
  if (mark === "appeared") return tag("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r, ...attributes }, "", hover);
  return tag("circle", { cx: x, cy: y, r, ...attributes }, "", hover);
}

// What is written beside a capsule, which a page can act on as on the capsule.
const named = (name, words) => `<g data-name-of="${name}">${words}</g>`;

function* drawHeading(tree, l, { columns }) {
  const column = columns[l], middle = (column.left + column.right) / 2, { name, activations } = tree.layers[l];
  yield text(name, middle, 16, 13, { "text-anchor": "middle", "font-weight": "bold" });
  yield text(`${activeIn(tree, l)} of ${activations.length} active`, middle, 32, 11, { "text-anchor": "middle" });
  if (l < tree.T.length) yield text(`T ${fixed(tree.T[l], 2)}`, (column.right + columns[l + 1].left) / 2, 16, 11, { "text-anchor": "middle", "fill-opacity": 0.75 });
}

function* drawClasses(tree, { columns }, colour) {
  const column = columns.at(-1), x = column.right + 8;
  for (const [c, [, y]] of column.spots) {
    const name = [...tree.classNames[c]], score = tree.scores[c];
    const said = `${name.length <= LONGEST ? name.join("") : `${name.slice(0, LONGEST - 1).join("")}…`} ${fixed(score, 2)}`;
    const bar = { x, y: y + 5, height: 4, rx: 2 };
    yield named(`${tree.layers.length - 1}.${c}`, text(said, x, y, 13, c === tree.predicted ? { "font-weight": "bold" } : {})
      + tag("rect", { ...bar, width: 100, fill: NEUTRAL, "fill-opacity": 0.12 }) + tag("rect", { ...bar, width: 100 * score, fill: colour(c) }));
  }
}
