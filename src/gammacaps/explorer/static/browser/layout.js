// Where each capsule stands in a drawing, as gammacaps.explain.draw.layout lays trees out for the server.

const TOP = 56, INPUT = 104, GAP = 124, SPACING = 24, TALL = 960, LONGEST = 24, BESIDE = 112;

export const LEFT = INPUT + 28; // where the capsules begin: the input stands beside the drawing
export { LONGEST };

const hasPlaces = ({ grid: [rows, columns] }) => rows !== 1 || columns !== 1;

// One layout for all trees of a network. names: of capsules, by "layer.capsule".
export function layOut(trees, showAll, names) {
  const orders = ordered(trees, showAll), { layers, classNames } = trees[0];
  const spacing = orders.map((order) => Math.min(SPACING, Math.max(8, TALL / Math.max(1, order.length))));
  spacing[layers.length - 1] = Math.max(spacing.at(-1), SPACING); // names need it
  const heights = layers.map((layer, l) => (hasPlaces(layer) ? cellSide(layer) * layer.grid[0] : spacing[l] * orders[l].length));
  const body = Math.max(...heights, INPUT + 80);
  const columns = [];
  let x = INPUT + 36;
  for (const [l, layer] of layers.entries()) {
    const named = l > 0 && l < layers.length - 1 ? new Map(Object.entries(names).filter(([key]) => key.startsWith(`${l}.`)).map(([key, each]) => [Number(key.split(".")[1]), each])) : new Map();
    columns.push(hasPlaces(layer) ? gridColumn(layer, orders[l], x, TOP + (body - heights[l]) / 2) : plainColumn(orders[l], x, body, spacing[l], named));
    x = columns.at(-1).right + GAP;
  }
  const letters = Math.max(...classNames.map((name) => Math.min([...name].length, LONGEST)));
  return { width: x - GAP + Math.max(116, 8 + 7.5 * (letters + 5)), height: TOP + body, columns };
}

function cellSide({ grid, types }) {
  return Math.max(Math.min(60, 372 / Math.max(...grid)), 4 * Math.ceil(Math.sqrt(types)));
}

function gridColumn(layer, order, x, top) {
  const side = cellSide(layer), across = Math.ceil(Math.sqrt(layer.types)), pitch = (0.86 * side) / across;
  const empty = ((across - Math.ceil(layer.types / across)) * pitch) / 2; // so that the types stand in the middle
  const spots = new Map(), levels = new Map();
  for (const capsule of order) {
    const place = Math.floor(capsule / layer.types), kind = capsule % layer.types;
    const row = Math.floor(place / layer.grid[1]), column = place % layer.grid[1];
    spots.set(capsule, [x + side * (column + 0.07) + pitch * ((kind % across) + 0.5), top + side * (row + 0.07) + empty + pitch * (Math.floor(kind / across) + 0.5)]);
    levels.set(capsule, top + side * (row + 0.1 + (0.8 * (column + 0.5)) / layer.grid[1]));
  }
  return { left: x, right: x + side * layer.grid[1], top, cell: side, radius: 0.42 * pitch, spots, levels, names: new Map() };
}

function plainColumn(order, x, body, space, names) {
  const radius = 0.38 * space, step = Math.min(body / Math.max(1, order.length), 1.5 * space);
  const first = TOP + (body - step * (order.length - 1)) / 2;
  const levels = new Map(order.map((capsule, n) => [capsule, first + step * n]));
  const spots = new Map(order.map((capsule) => [capsule, [x + radius, levels.get(capsule)]]));
  return { left: x, right: x + 2 * radius + (names.size ? BESIDE : 0), top: TOP, cell: 0, radius, spots, levels, names };
}

// The capsules drawn of each layer, from top to bottom: below the classes in the order of their parents.
function ordered(trees, showAll) {
  const last = trees[0].layers.length - 1;
  const shown = trees[0].layers.map(({ activations }, l) => new Set([
    ...(showAll ? activations.keys() : trees.flatMap((tree) => [...tree.nodes[l].keys()])), ...(l === last ? trees.map(({ predicted }) => predicted) : []),
  ]));
  const heights = meanHeights(trees);
  const orders = [[...shown[last]].sort((a, b) => a - b)];
  for (let l = last - 1; l >= 0; l--) {
    const above = new Map(orders[0].map((capsule, n) => [capsule, n]));
    const parents = new Map(trees.toReversed().flatMap((tree) => [...tree.nodes[l]].map(([i, node]) => [i, node.parent])));
    const key = new Map([...shown[l]].map((i) => [i, [above.get(parents.get(i)) ?? above.size, heights.get(`${l}.${i}`) ?? 0, i]]));
    const compare = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
    orders.unshift([...shown[l]].sort((a, b) => compare(key.get(a), key.get(b))));
  }
  return orders;
}

// How far down a capsule's children stand in the image, from 0 to 1: their mean, weighed by their couplings.
function meanHeights(trees) {
  const sums = new Map(), means = new Map();
  for (const [l, layer] of trees[0].layers.entries()) {
    const across = layer.types * layer.grid[1];
    for (const node of trees.flatMap((tree) => [...tree.nodes[l].values()])) {
      const key = `${l}.${node.index}`, [own, of] = sums.get(key) ?? [0.5, 1];
      const mean = hasPlaces(layer) ? (Math.floor(node.index / across) + 0.5) / layer.grid[0] : own / of;
      means.set(key, mean);
      if (node.parent === null) continue;
      const [weighed, weight] = sums.get(`${l + 1}.${node.parent}`) ?? [0, 0];
      sums.set(`${l + 1}.${node.parent}`, [weighed + node.coupling * mean, weight + node.coupling]);
    }
  }
  return means;
}
