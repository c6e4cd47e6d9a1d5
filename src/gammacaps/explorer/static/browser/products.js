// Products of matrices, of which every convolution is made: weights that are held, times an image's columns.

// In plain JavaScript, in float32 or float64: what runs where WebAssembly does not, and what the other is checked by.
export class PlainProducts {
  // Weights (m, k), row by row.
  hold(matrix, m, k) {
    return { matrix, m, k };
  }

  // product (m, n) = weights (m, k) columns (k, n); n is a multiple of 8.
  run({ matrix, m, k }, columns, product, n) {
    const sums = new Float64Array(n);
    for (let i = 0; i < m; i++) {
      sums.fill(0);
      for (let l = 0; l < k; l++) {
        const weight = matrix[i * k + l], from = l * n;
        for (let j = 0; j < n; j++) sums[j] += weight * columns[from + j];
      }
      product.set(sums, i * n);
    }
  }
}

const PAGE = 65536; // bytes by which memory grows
const BLOCK = 512; // columns' rows at a time, which stay in the processor's cache

// By vector instructions of WebAssembly, in float32.
export class FastProducts {
  constructor(code) {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code));
    this.memory = exports.memory;
    this.product = exports.product;
    this.top = 16; // bytes taken by weights
  }

  reserve(bytes) {
    const missing = bytes - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE));
  }

  // Four rows side by side, as the code reads them.
  hold(matrix, m, k) {
    const groups = Math.ceil(m / 4), at = this.top;
    this.top += groups * k * 16;
    this.reserve(this.top);
    const packed = new Float32Array(this.memory.buffer, at, groups * k * 4);
    for (let i = 0; i < m; i++) {
      for (let l = 0; l < k; l++) packed[((i >> 2) * k + l) * 4 + (i & 3)] = matrix[i * k + l];
    }
    return { at, m, k, groups };
  }

  run({ at, m, k, groups }, columns, product, n) {
    const first = this.top, last = first + k * n * 4;
    this.reserve(last + groups * 4 * n * 4);
    new Float32Array(this.memory.buffer, first, k * n).set(columns.subarray(0, k * n));
    const made = new Float32Array(this.memory.buffer, last, groups * 4 * n);
    made.fill(0);
    for (let l = 0; l < k; l += BLOCK) {
      this.product(at + l * 16, first + l * n * 4, last, groups, Math.min(BLOCK, k - l), n / 8, k * 16);
    }
    product.set(made.subarray(0, m * n));
  }
}
