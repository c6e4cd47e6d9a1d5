// Where in an image a capsule looks: the pixels on which its length depends most, in orange.

const TINT = [1, 0.45, 0], STRENGTH = 0.75;

export function tinted(model, image, layer, capsule) {
  const [channels, rows, columns] = model.shape.image_shape, area = rows * columns;
  model.parse(image);
  const slope = model.slope(layer, [[capsule, 1]]);
  const change = Float32Array.from({ length: area }, (_, k) => {
    let most = 0;
    for (let c = 0; c < channels; c++) most = Math.max(most, Math.abs(slope[c * area + k]));
    return most;
  });
  const smooth = change.map((_, k) => { // the mean of 3 x 3 pixels, as far as there are any
    const x = k % columns, y = Math.floor(k / columns);
    let sum = 0, count = 0;
    for (let py = Math.max(0, y - 1); py <= Math.min(rows - 1, y + 1); py++) {
      for (let px = Math.max(0, x - 1); px <= Math.min(columns - 1, x + 1); px++, count++) sum += change[py * columns + px];
    }
    return sum / count;
  });
  const most = Math.max(1e-12, smooth.reduce((best, value) => Math.max(best, value), 0));
  return Float32Array.from({ length: 3 * area }, (_, at) => {
    const c = Math.floor(at / area), k = at % area, share = (STRENGTH * smooth[k]) / most;
    let value = 0;
    if (channels === 3) value = image[at];
    else for (let each = 0; each < channels; each++) value += image[each * area + k] / channels;
    return (1 - share) * value + share * TINT[c];
  });
}
