// Routing of one layer's capsules to the next, by scaled distances (SDA) or by agreement (RBA), and its gradient.
// I lower capsules of size d vote for J upper ones of size D; the formulas are those of gammacaps.ops.routing.rules.

const TINY = 1e-12; // shorter counts as zero where something is divided by it
const PARENT_COUPLING = 0.9, PARENT_DISTANCE = 0.5; // equation 7

export function squash(sums, poses, size) {
  for (let k = 0; k < sums.length; k += size) {
    const norm = lengthOf(sums, k, size), factor = norm / (1 + norm * norm);
    for (let e = k; e < k + size; e++) poses[e] = sums[e] * factor;
  }
}

export function squashGradient(sums, gradient, made, size) {
  for (let k = 0; k < sums.length; k += size) {
    const norm = lengthOf(sums, k, size), below = 1 + norm * norm;
    let along = 0;
    for (let e = k; e < k + size; e++) along += sums[e] * gradient[e];
    along *= (1 - norm * norm) / (Math.max(norm, TINY) * below * below);
    for (let e = k; e < k + size; e++) made[e] = (gradient[e] * norm) / below + sums[e] * along;
  }
}

export function lengthOf(vectors, first, size) {
  let sum = 0;
  for (let e = first; e < first + size; e++) sum += vectors[e] * vectors[e];
  return Math.sqrt(sum);
}

export class Routing {
  // shape: lower (I), upper (J), lower_size (d), upper_size (D), rule, iterations; weight (I, d, J, D), bias (J, D) or null.
  constructor(shape, weight, bias, Real) {
    const { lower: I, upper: J, lower_size: d, upper_size: D } = shape;
    [this.I, this.J, this.d, this.D] = [I, J, d, D];
    [this.sda, this.usual, this.weight, this.bias] = [shape.rule === "sda", shape.iterations, weight, bias];
    this.scale = Math.log((PARENT_COUPLING * (J - 1)) / (1 - PARENT_COUPLING)) / (PARENT_DISTANCE - 1);
    this.near = 100 * (Real === Float32Array ? 2 ** -23 : 2 ** -52);
    const many = (size) => Array.from({ length: this.usual }, () => new Real(size));
    this.votes = new Real(I * J * D);
    this.ratio = new Real(I * J); // by which a vote was shortened
    this.most = new Real(I); // the length of the capsule that casts it
    [this.couplings, this.distances, this.sums, this.poses] = [many(I * J), many(I * J), many(J * D), many(J * D)];
    this.gradVotes = new Real(I * J * D);
    this.gradPoses = new Real(I * d);
    this.logits = new Float64Array(J);
  }

  forward(lower, iterations = this.usual) {
    const { I, J, D, couplings, sums, poses, votes } = this;
    this.lower = lower;
    this.iterations = iterations;
    this.vote();
    for (let k = 0; k < iterations; k++) {
      if (k === 0) couplings[0].fill(1 / J);
      else this.couple(k);
      const c = couplings[k], total = new Float64Array(J * D);
      if (this.bias) total.set(this.bias);
      for (let i = 0, at = 0; i < I; i++) {
        for (let j = 0, to = 0; j < J; j++) {
          const coupling = c[i * J + j];
          for (let e = 0; e < D; e++, at++, to++) total[to] += coupling * votes[at];
        }
      }
      sums[k].set(total);
      squash(sums[k], poses[k], D);
    }
    return poses[iterations - 1];
  }

  // Each vote is W_ij v_i; with SDA no longer than the capsule that casts it.
  vote() {
    const { I, J, d, D, weight, lower, votes, ratio } = this, width = J * D, row = new Float64Array(width);
    for (let i = 0; i < I; i++) {
      row.fill(0);
      for (let k = 0; k < d; k++) {
        const entry = lower[i * d + k], from = (i * d + k) * width;
        if (entry !== 0) for (let e = 0; e < width; e++) row[e] += entry * weight[from + e];
      }
      const most = (this.most[i] = lengthOf(lower, i * d, d));
      for (let j = 0; j < J; j++) {
        const size = this.sda ? lengthOf(row, j * D, D) : 0, shorter = size > most ? most / size : 1;
        ratio[i * J + j] = shorter;
        for (let e = j * D; e < (j + 1) * D; e++) votes[i * width + e] = row[e] * shorter;
      }
    }
  }

  // The couplings of iteration k, from the poses of the one before.
  couple(k) {
    const { I, J, D, votes, logits, scale } = this, parents = this.poses[k - 1];
    for (let i = 0, at = 0; i < I; i++) {
      let mean = 0;
      for (let j = 0, to = 0; j < J; j++) {
        let value = 0;
        if (this.sda) {
          for (let e = 0; e < D; e++, at++, to++) value += (votes[at] - parents[to]) ** 2;
          mean += value = this.distances[k - 1][i * J + j] = Math.sqrt(value);
        } else {
          for (let e = 0; e < D; e++, at++, to++) value += votes[at] * parents[to];
          value += k > 1 ? this.distances[k - 2][i * J + j] : 0; // of RBA these are the logits so far
          this.distances[k - 1][i * J + j] = value;
        }
        logits[j] = value;
      }
      const factor = this.sda ? scale / Math.max(mean / J, TINY) : 1;
      let high = -Infinity, total = 0;
      for (let j = 0; j < J; j++) high = Math.max(high, (logits[j] *= factor));
      for (let j = 0; j < J; j++) total += logits[j] = Math.exp(logits[j] - high);
      for (let j = 0; j < J; j++) this.couplings[k][i * J + j] = logits[j] / total;
    }
  }

  // The gradient at the lower poses, from that at the upper ones, through all iterations.
  backward(gradient) {
    const { I, J, D, votes, gradVotes, couplings } = this;
    const gradSums = new Float64Array(J * D), atCouplings = new Float64Array(I * J), atLogits = new Float64Array(I * J);
    gradVotes.fill(0);
    for (let k = this.iterations - 1; k >= 0; k--) {
      squashGradient(this.sums[k], gradient, gradSums, D);
      for (let i = 0, at = 0, pair = 0; i < I; i++) {
        for (let j = 0, to = 0; j < J; j++, pair++) {
          const coupling = couplings[k][pair];
          let dot = 0;
          for (let e = 0; e < D; e++, at++, to++) {
            dot += votes[at] * gradSums[to];
            gradVotes[at] += coupling * gradSums[to];
          }
          atCouplings[pair] = dot;
        }
      }
      if (k > 0) gradient = this.throughCouplings(k, atCouplings, atLogits);
    }
    return this.throughVotes();
  }

  // From the gradient at the couplings of iteration k to those at the votes and at the poses of iteration k - 1.
  throughCouplings(k, atCouplings, atLogits) {
    const { I, J, D, votes, gradVotes, scale, near } = this;
    const c = this.couplings[k], parents = this.poses[k - 1], distances = this.distances[k - 1];
    const gradient = new Float64Array(J * D);
    for (let i = 0; i < I; i++) {
      const first = i * J;
      let usual = 0, weighed = 0, shared = 0;
      for (let j = first; j < first + J; j++) shared += c[j] * atCouplings[j];
      for (let j = first; j < first + J; j++) {
        const logit = c[j] * (atCouplings[j] - shared);
        atLogits[j] = this.sda ? logit : atLogits[j] + logit; // RBA adds up its logits
        usual += distances[j];
        weighed += logit * distances[j];
      }
      usual = Math.max(usual / J, TINY);
      const mean = usual > TINY ? weighed / J / usual : 0;
      for (let j = 0; j < J; j++) {
        const pair = first + j, far = distances[pair];
        // Nearer than `near` the direction from parent to vote is rounding error.
        const factor = this.sda ? (scale * far * (atLogits[pair] - mean)) / (usual * Math.max(far * far, near * near)) : atLogits[pair];
        for (let e = 0; e < D; e++) {
          const vote = votes[pair * D + e], parent = parents[j * D + e];
          gradVotes[pair * D + e] += factor * (this.sda ? vote - parent : parent);
          gradient[j * D + e] += factor * (this.sda ? parent - vote : vote);
        }
      }
    }
    return gradient;
  }

  throughVotes() {
    const { I, J, d, D, votes, gradVotes, gradPoses, ratio, most, lower, weight } = this, width = J * D;
    for (let i = 0; i < I; i++) {
      let longer = 0; // the gradient at the length that votes may have
      for (let j = 0; j < J; j++) {
        const shorter = ratio[i * J + j], first = (i * J + j) * D;
        if (shorter === 1) continue;
        let along = 0;
        for (let e = first; e < first + D; e++) along += votes[e] * gradVotes[e];
        along /= Math.max(most[i], TINY);
        longer += along;
        for (let e = first; e < first + D; e++) gradVotes[e] = shorter * (gradVotes[e] - (votes[e] * along) / Math.max(most[i], TINY));
      }
      for (let k = 0; k < d; k++) {
        const from = (i * d + k) * width;
        let sum = (lower[i * d + k] * longer) / Math.max(most[i], TINY);
        for (let e = 0; e < width; e++) sum += weight[from + e] * gradVotes[i * width + e];
        gradPoses[i * d + k] = sum;
      }
    }
    return gradPoses;
  }
}
