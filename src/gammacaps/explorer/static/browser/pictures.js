// Images as the page gets them: bytes in base64, and PNG files of their own pixels.

import { even } from "./numbers.js";

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function chunk(kind, content) {
  const bytes = new Uint8Array(12 + content.length), view = new DataView(bytes.buffer);
  view.setUint32(0, content.length);
  bytes.set([...kind].map((letter) => letter.charCodeAt(0)), 4);
  bytes.set(content, 8);
  let check = 0xffffffff;
  for (let k = 4; k < 8 + content.length; k++) check = TABLE[(check ^ bytes[k]) & 255] ^ (check >>> 8);
  view.setUint32(8 + content.length, ~check >>> 0);
  return bytes;
}

// zlib's format, nothing made smaller.
function stored(content) {
  const parts = [[0x78, 0x01]];
  for (let k = 0; k < content.length; k += 65535) {
    const part = content.subarray(k, k + 65535), size = part.length;
    parts.push([k + size === content.length ? 1 : 0, size & 255, size >> 8, ~size & 255, (~size >> 8) & 255], part);
  }
  let [low, high] = [1, 0];
  for (const byte of content) high = (high + (low = (low + byte) % 65521)) % 65521;
  parts.push([high >> 8, high & 255, low >> 8, low & 255]);
  return joined(parts);
}

function joined(parts) {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

export function toBase64(bytes) {
  let letters = "";
  for (let k = 0; k < bytes.length; k += 8192) letters += String.fromCharCode(...bytes.subarray(k, k + 8192));
  return btoa(letters);
}

export function fromBase64(words) {
  const letters = atob(words), bytes = new Uint8Array(letters.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = letters.charCodeAt(k);
  return bytes;
}

export const levels = (image) => Uint8Array.from(image, (value) => even(Math.fround(255 * Math.min(1, Math.max(0, value)))));

// Three channels are red, green and blue; any other number stands side by side in grey.
export function png(image, [channels, rows, columns]) {
  const bytes = levels(image), colour = channels === 3, width = colour ? columns : channels * columns;
  const line = 1 + (colour ? 3 : channels) * columns, content = new Uint8Array(rows * line);
  for (let c = 0; c < channels; c++) {
    for (let y = 0; y < rows; y++) {
      for (let x = 0; x < columns; x++) content[y * line + 1 + (colour ? 3 * x + c : c * columns + x)] = bytes[(c * rows + y) * columns + x];
    }
  }
  const head = new Uint8Array(13), view = new DataView(head.buffer);
  view.setUint32(0, width);
  view.setUint32(4, rows);
  head.set([8, colour ? 2 : 0], 8);
  const file = joined([[0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10], chunk("IHDR", head), chunk("IDAT", stored(content)), chunk("IEND", [])]);
  return `data:image/png;base64,${toBase64(file)}`;
}
