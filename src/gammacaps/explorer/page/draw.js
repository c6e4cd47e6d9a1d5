// The pad: a canvas of the network's own pixels. What it shows is exactly what the network gets.

import { Pen } from "./pen.js";

const RADIUS = 1.35; // of the brush, for an image of 28 pixels
const HISTORY = 50;

export class Pad {
  constructor(canvas, shape, changed) {
    [this.channels, this.height, this.width] = shape;
    this.canvas = canvas;
    this.changed = changed; // called with true once a stroke has ended
    this.pixels = new Uint8Array(this.channels * this.height * this.width);
    this.history = [];
    this.erasing = false;
    this.radius = (RADIUS * Math.min(this.height, this.width)) / 28;
    canvas.width = this.width;
    canvas.height = this.height;
    this.listen();
    this.pen = new Pen(this);
    this.paint();
  }

  show(pixels) {
    this.pixels = pixels.slice();
    this.paint();
  }

  keep() {
    this.history.push(this.pixels.slice());
    if (this.history.length > HISTORY) this.history.shift();
  }

  undo() {
    const last = this.history.pop();
    if (!last) return;
    this.show(last);
    this.changed(true);
  }

  clear() {
    this.keep();
    this.show(new Uint8Array(this.pixels.length));
    this.changed(true);
  }

  paint() {
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(this.width, this.height);
    const area = this.width * this.height;
    for (let k = 0; k < area; k++) {
      for (let c = 0; c < 3; c++) image.data[4 * k + c] = this.shade(k, c, area);
      image.data[4 * k + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }

  // Three channels are red, green and blue; of any other number the mean in grey.
  shade(place, colour, area) {
    if (this.channels === 3) return this.pixels[colour * area + place];
    let sum = 0;
    for (let c = 0; c < this.channels; c++) sum += this.pixels[c * area + place];
    return sum / this.channels;
  }

  // A stroke from one point to the next: soft at its border, never darker than what is there (or lighter, to erase).
  stroke(from, to) {
    const { radius, width, height } = this;
    const dx = to.x - from.x, dy = to.y - from.y, squared = dx * dx + dy * dy;
    const left = Math.max(0, Math.floor(Math.min(from.x, to.x) - radius - 1));
    const right = Math.min(width - 1, Math.ceil(Math.max(from.x, to.x) + radius + 1));
    const top = Math.max(0, Math.floor(Math.min(from.y, to.y) - radius - 1));
    const bottom = Math.min(height - 1, Math.ceil(Math.max(from.y, to.y) + radius + 1));
    for (let y = top; y <= bottom; y++) {
      for (let x = left; x <= right; x++) {
        const along = squared ? Math.min(1, Math.max(0, ((x + 0.5 - from.x) * dx + (y + 0.5 - from.y) * dy) / squared)) : 0;
        const away = Math.hypot(x + 0.5 - from.x - along * dx, y + 0.5 - from.y - along * dy);
        const ink = Math.round(255 * Math.min(1, Math.max(0, radius + 0.5 - away)));
        for (let c = 0; c < this.channels; c++) {
          const place = (c * height + y) * width + x;
          this.pixels[place] = this.erasing ? Math.min(this.pixels[place], 255 - ink) : Math.max(this.pixels[place], ink);
        }
      }
    }
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: ((event.clientX - box.left) / box.width) * this.width, y: ((event.clientY - box.top) / box.height) * this.height };
  }

  listen() {
    let last = null;
    const end = () => {
      if (last) this.changed(true);
      last = null;
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.canvas.setPointerCapture(event.pointerId);
      this.keep();
      last = this.point(event);
      this.stroke(last, last);
      this.paint();
      this.changed(false);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      for (const each of event.getCoalescedEvents?.() ?? [event]) {
        const now = this.point(each);
        this.stroke(last, now);
        last = now;
      }
      this.paint();
      this.changed(false);
    });
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
  }
}

// An image file or element as the network's pixels: the middle of it, averaged to the size.
export async function pixelsOf(source, shape) {
  const [channels, height, width] = shape;
  const bitmap = await createImageBitmap(source);
  if (bitmap.width * bitmap.height > 5e7) throw new Error("too large");
  const share = Math.min(bitmap.width / width, bitmap.height / height);
  const [w, h] = [width * share, height * share];
  // Halved again and again before the last step, so that every pixel counts.
  let from = bitmap, box = [(bitmap.width - w) / 2, (bitmap.height - h) / 2, w, h];
  for (;;) {
    const [next, tall] = [Math.max(width, Math.round(box[2] / 2)), Math.max(height, Math.round(box[3] / 2))];
    const canvas = new OffscreenCanvas(next, tall);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.imageSmoothingEnabled = box[2] !== width || box[3] !== height;
    context.drawImage(from, ...box, 0, 0, next, tall);
    if (next === width && tall === height) return channelsOf(context.getImageData(0, 0, width, height).data, channels);
    [from, box] = [canvas, [0, 0, next, tall]];
  }
}

// What is transparent counts as black.
function channelsOf(data, channels) {
  const area = data.length / 4;
  const pixels = new Uint8Array(channels * area);
  for (let k = 0; k < area; k++) {
    const [red, green, blue] = [0, 1, 2].map((c) => (data[4 * k + c] * data[4 * k + 3]) / 255);
    const grey = red === green && green === blue ? red : 0.299 * red + 0.587 * green + 0.114 * blue;
    for (let c = 0; c < channels; c++) pixels[c * area + k] = Math.round(channels === 3 ? [red, green, blue][c] : grey);
  }
  return pixels;
}
