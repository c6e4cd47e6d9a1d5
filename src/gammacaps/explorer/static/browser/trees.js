// The parse tree of an image: every active capsule and the parent that it chose; and how two trees differ.

import { fixed, four, largest } from "./numbers.js";

const FEW_PARENTS = 64; // up to so many, a node above the primary layer keeps its couplings to all of them

// couplings: of each routed layer (I, J); iteration: null for the last.
export function treeOf(shape, parse, couplings, { tau, classNames }, iteration = null) {
  const layers = parse.lengths.map((lengths, l) => ({
    name: shape.layers[l], activations: lengths, grid: shape.grids[l], types: lengths.length / (shape.grids[l][0] * shape.grids[l][1]),
  }));
  const nodes = [];
  let chosen = new Set();
  for (const [l, layer] of layers.entries()) {
    const own = nodesOf(l, layer, chosen, tau, couplings[l] ?? null, layers[l + 1]?.activations.length);
    chosen = new Set([...own.values()].map((node) => node.parent).filter((parent) => parent !== null));
    nodes.push(own);
  }
  const T = couplings.map((each, l) => closeness(each, layers[l + 1].activations.length));
  const tree = { layers, nodes, T, scores: parse.scores, predicted: largest(parse.scores), tau, classNames, iteration };
  tree.ways = waysOf(tree);
  return tree;
}

// The active capsules of a layer and those that the layer below chose, by their index.
function nodesOf(l, { activations }, chosen, tau, couplings, J) {
  const shown = Array.from(activations.keys()).filter((i) => activations[i] > tau || chosen.has(i));
  return new Map(shown.map((i) => {
    const node = { index: i, activation: activations[i], active: activations[i] > tau, chosen: chosen.has(i), parent: null, coupling: null, second: null, couplings: null };
    if (couplings && node.active) {
      const row = couplings.subarray(i * J, (i + 1) * J);
      let first = -1, second = -Infinity;
      row.forEach((coupling, j) => {
        if (first < 0 || coupling > row[first]) [second, first] = [first < 0 ? second : row[first], j];
        else second = Math.max(second, coupling);
      });
      Object.assign(node, { coupling: row[first], second, parent: row[first] > second ? first : null });
      if (l > 0 && J <= FEW_PARENTS) node.couplings = Array.from(row);
    }
    return [i, node];
  }));
}

// T = 1 - H / log J (equation 2).
function closeness(couplings, J) {
  let entropy = 0;
  for (const coupling of couplings) if (coupling > 0) entropy -= coupling * Math.log(coupling);
  return Math.max(0, 1 - entropy / Math.log(J) / (couplings.length / J));
}

// The class at the end of each node's path from parent to parent, by "layer.capsule"; null where it ends before.
function waysOf({ layers, nodes, scores }) {
  const last = layers.length - 1;
  const goals = new Map(Array.from(scores, (_, i) => [`${last}.${i}`, i]));
  for (let l = last - 1; l >= 0; l--) {
    for (const [i, { parent }] of nodes[l]) goals.set(`${l}.${i}`, parent === null ? null : goals.get(`${l + 1}.${parent}`));
  }
  return goals;
}

export const activeIn = (tree, l) => tree.layers[l].activations.reduce((sum, value) => sum + (value > tree.tau), 0);

// A capsule in words.
export function tell(tree, l, i) {
  if (l === tree.layers.length - 1) return tree.classNames[i];
  const { name, grid: [rows, columns], types } = tree.layers[l];
  if (rows === 1 && columns === 1) return `${name} capsule ${i}`;
  const place = Math.floor(i / types);
  return `${name} row ${Math.floor(place / columns)}, column ${place % columns}, type ${i % types}`;
}

const rounded = (value) => (Array.isArray(value) ? value.map(rounded) : typeof value === "number" && !Number.isInteger(value) ? four(value) : value);

// As ParseTree.to_json.
export function treeJson(tree) {
  const layers = tree.layers.map(({ name, activations, grid, types }, l) => {
    const all = [...tree.nodes[l].values()];
    const columns = Object.fromEntries(["index", "active", "chosen", "parent", "coupling", "second", "couplings"].map((key) => [key, rounded(all.map((node) => node[key]))]));
    if (columns.couplings.every((each) => each === null)) columns.couplings = null;
    return { name, activations: rounded(Array.from(activations)), grid, types, nodes: columns };
  });
  return { format: 1, tau: four(tree.tau), predicted: tree.predicted, scores: rounded(Array.from(tree.scores)), T: rounded(tree.T), class_names: tree.classNames, iteration: tree.iteration, layers };
}

// Which capsules changed their parent, appeared or vanished from the first tree to the second.
export function difference(clean, attacked) {
  const layers = clean.layers.map(({ name }, l) => {
    const [before, after] = [clean, attacked].map((tree) => new Map([...tree.nodes[l].values()].filter(({ active }) => active).map(({ index, parent }) => [index, parent])));
    const both = [...before.keys()].filter((i) => after.has(i));
    return {
      name,
      same: both.filter((i) => before.get(i) === after.get(i)),
      moved: both.filter((i) => before.get(i) !== after.get(i)).map((i) => [i, before.get(i), after.get(i)]),
      appeared: [...after.keys()].filter((i) => !before.has(i)),
      vanished: [...before.keys()].filter((i) => !after.has(i)),
    };
  });
  return { predicted: [clean.predicted, attacked.predicted], layers };
}

export function differenceJson({ predicted, layers }) {
  const counted = ({ same, moved, appeared, vanished }) => ({ same: same.length, moved: moved.length, appeared: appeared.length, vanished: vanished.length });
  return { predicted, layers: layers.map((layer) => ({ ...layer, counts: counted(layer) })) };
}

// What changed, in a line: the class first, then the layers in which anything did.
export function whatChanged({ classNames }, { predicted, layers }) {
  const [before, after] = predicted.map((c) => classNames[c]);
  const said = [before === after ? `Taken for ${before} in both.` : `Taken for ${before} → ${after}.`];
  for (const { name, moved, appeared, vanished } of layers) {
    const kinds = [[moved, "changed parent"], [appeared, "appeared"], [vanished, "vanished"]].filter(([which]) => which.length);
    if (kinds.length) said.push(`${name}: ${kinds.map(([which, kind]) => `${which.length} ${kind}`).join(", ")}.`);
  }
  return (said.length > 1 ? said : [...said, "The same capsules are active, with the same parents."]).join(" ");
}

// The drawing in words, for those who can't see it.
export function inWords(tree) {
  const said = [`Parse tree of an image taken for ${tree.classNames[tree.predicted]} (score ${fixed(tree.scores[tree.predicted], 2)}).`];
  for (const [l, layer] of tree.layers.entries()) {
    const closer = l < tree.T.length ? `, T ${fixed(tree.T[l], 2)}.` : ".";
    said.push(`Layer ${layer.name}: ${activeIn(tree, l)} of ${layer.activations.length} capsules are active${closer}`);
  }
  return said.join(" ");
}
