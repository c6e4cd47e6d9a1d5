// What may be done to an image before it is shown to the network: it is turned, shifted, blurred and darkened.

import { even } from "./numbers.js";

const single = Math.fround;

export function changed(image, shape, { turn = 0, right = 0, down = 0, blur = 0, dark = 0 } = {}) {
  if (!(turn || right || down || blur || dark)) return image;
  if (turn || right || down) image = placed(image, shape, turn, right, down);
  if (blur) image = smooth(image, shape, blur);
  return Float32Array.from(image, (value) => Math.min(255, Math.max(0, even(single(single(single(1 - dark) * value) * 255)))) / 255);
}

// Turned clockwise about the centre, then shifted; each pixel from the four nearest, black from outside.
function placed(image, [channels, rows, columns], turn, right, down) {
  const [cos, sin] = [Math.cos((turn * Math.PI) / 180), Math.sin((turn * Math.PI) / 180)];
  const moved = new Float32Array(image.length);
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      const across = x + 0.5 - columns / 2 - right, along = y + 0.5 - rows / 2 - down;
      const [fromX, fromY] = [cos * across + sin * along + columns / 2 - 0.5, -sin * across + cos * along + rows / 2 - 0.5];
      const [left, top] = [Math.floor(fromX), Math.floor(fromY)];
      for (let c = 0; c < channels; c++) {
        let sum = 0;
        for (const [px, py] of [[left, top], [left + 1, top], [left, top + 1], [left + 1, top + 1]]) {
          if (px < 0 || py < 0 || px >= columns || py >= rows) continue;
          sum += (1 - Math.abs(fromX - px)) * (1 - Math.abs(fromY - py)) * image[(c * rows + py) * columns + px];
        }
        moved[(c * rows + y) * columns + x] = Math.min(1, Math.max(0, sum));
      }
    }
  }
  return moved;
}

// Gaussian blur of that deviation, cut off at four of them, the edges continued.
function smooth(image, [channels, rows, columns], sigma) {
  const reach = Math.max(1, Math.trunc(4 * sigma + 0.5));
  const weights = Array.from({ length: 2 * reach + 1 }, (_, k) => Math.exp(-0.5 * ((k - reach) / sigma) ** 2));
  const total = weights.reduce((sum, weight) => sum + weight);
  const along = (values, count, step, first) => {
    for (let start = 0; start < values.length; start++) {
      const place = Math.floor(start / step) % count;
      let sum = 0;
      for (let k = -reach; k <= reach; k++) sum += weights[k + reach] * values[start + (Math.min(count - 1, Math.max(0, place + k)) - place) * step];
      first[start] = sum / total;
    }
    return first;
  };
  return along(along(image, columns, 1, new Float32Array(image.length)), rows, columns, new Float32Array(image.length));
}
