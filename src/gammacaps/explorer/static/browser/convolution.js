// An encoder's layers, forward and back to their input. Values lie channel by channel, `stride` apart.

export class Convolution {
  // shape: channels, filters, kernel, stride, padding and activation; weight (filters, channels, kernel, kernel).
  constructor(shape, weight, bias, from, products, Real) {
    Object.assign(this, shape);
    [this.from, this.bias, this.products] = [from, bias, products];
    const { channels, filters, kernel, stride, padding } = this;
    this.rows = Math.floor((from.rows + 2 * padding - kernel) / stride) + 1;
    this.columns = Math.floor((from.columns + 2 * padding - kernel) / stride) + 1;
    this.step = stride;
    this.area = this.rows * this.columns;
    this.stride = 8 * Math.ceil(this.area / 8);
    const inside = channels * kernel * kernel;
    const turned = new Real(weight.length);
    for (let f = 0; f < filters; f++) for (let k = 0; k < inside; k++) turned[k * filters + f] = weight[f * inside + k];
    this.forwards = products.hold(weight, filters, inside);
    this.backwards = products.hold(turned, inside, filters);
    this.patches = new Real(inside * this.stride);
    this.before = new Real(filters * this.stride); // the activation
    this.values = this.activation ? new Real(filters * this.stride) : this.before;
    this.gradient = new Real(from.channels * from.stride);
    this.size = filters;
  }

  // Calls act(place in a patch, place in the input, how many) for each run of neighbours that both have.
  eachRun(act) {
    const { channels, kernel, step, padding, from, rows, columns, stride } = this;
    for (let c = 0, row = 0; c < channels; c++) {
      for (let ky = 0; ky < kernel; ky++) {
        for (let kx = 0; kx < kernel; kx++, row++) {
          const first = Math.max(0, Math.ceil((padding - kx) / step));
          const last = Math.min(columns - 1, Math.floor((from.columns - 1 + padding - kx) / step));
          if (last < first) continue;
          for (let y = 0; y < rows; y++) {
            const above = y * step + ky - padding;
            if (above < 0 || above >= from.rows) continue;
            act(row * stride + y * columns + first, c * from.stride + above * from.columns + first * step + kx - padding, last - first + 1);
          }
        }
      }
    }
  }

  forward(input) {
    const { patches, step, filters, stride, area, bias, before, values } = this;
    this.eachRun((to, at, count) => {
      for (let n = 0; n < count; n++, at += step) patches[to + n] = input[at];
    });
    this.products.run(this.forwards, patches, before, stride);
    for (let f = 0; f < filters; f++) {
      for (let k = f * stride; k < f * stride + area; k++) {
        before[k] += bias[f];
        if (this.activation === "relu") values[k] = before[k] > 0 ? before[k] : 0;
        else if (this.activation === "silu") values[k] = before[k] / (1 + Math.exp(-before[k]));
      }
    }
    return values;
  }

  // The gradient at the input, from that at the output, which is overwritten.
  backward(gradient) {
    const { before, step, stride } = this;
    for (let k = 0; k < gradient.length; k++) {
      if (this.activation === "relu") gradient[k] = before[k] > 0 ? gradient[k] : 0;
      else if (this.activation === "silu") {
        const share = 1 / (1 + Math.exp(-before[k]));
        gradient[k] *= share * (1 + before[k] * (1 - share));
      }
    }
    this.products.run(this.backwards, gradient, this.patches, stride);
    const back = this.gradient.fill(0), { patches } = this;
    this.eachRun((from, at, count) => {
      for (let n = 0; n < count; n++, at += step) back[at] += patches[from + n];
    });
    patches.fill(0); // the border of padding stays 0
    return back;
  }
}

// The largest of 2 x 2 neighbours; at an odd side of those that there are.
export class Pooling {
  constructor(from, Real) {
    this.from = from;
    [this.rows, this.columns] = [Math.ceil(from.rows / 2), Math.ceil(from.columns / 2)];
    this.stride = this.rows * this.columns;
    this.size = from.channels;
    this.values = new Real(this.size * this.stride);
    this.chosen = new Int32Array(this.size * this.stride);
    this.gradient = new Real(from.channels * from.stride);
  }

  forward(input) {
    const { from, rows, columns, stride, values, chosen } = this;
    for (let c = 0; c < this.size; c++) {
      for (let y = 0; y < rows; y++) {
        for (let x = 0; x < columns; x++) {
          let best = c * from.stride + 2 * y * from.columns + 2 * x;
          const wide = 2 * x + 1 < from.columns, tall = 2 * y + 1 < from.rows, first = best;
          if (wide && input[first + 1] > input[best]) best = first + 1;
          if (tall && input[first + from.columns] > input[best]) best = first + from.columns;
          if (wide && tall && input[first + from.columns + 1] > input[best]) best = first + from.columns + 1;
          const to = c * stride + y * columns + x;
          chosen[to] = best;
          values[to] = input[best];
        }
      }
    }
    return values;
  }

  backward(gradient) {
    this.gradient.fill(0);
    for (let k = 0; k < gradient.length; k++) this.gradient[this.chosen[k]] += gradient[k];
    return this.gradient;
  }
}
