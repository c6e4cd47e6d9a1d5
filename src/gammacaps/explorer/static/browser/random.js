// Random numbers: torch's own for attacks, so that they start where the server's do.

// Uniform in [0, 1), as torch.rand with torch.Generator().manual_seed(seed): the Mersenne twister, 24 bits a number.
export function uniform(seed) {
  const state = new Uint32Array(624);
  state[0] = seed;
  for (let k = 1; k < 624; k++) state[k] = Math.imul(1812433253, state[k - 1] ^ (state[k - 1] >>> 30)) + k;
  let next = 624;
  return () => {
    if (next === 624) {
      for (let k = 0; k < 624; k++) {
        const both = (state[k] & 0x80000000) | (state[(k + 1) % 624] & 0x7fffffff);
        state[k] = state[(k + 397) % 624] ^ (both >>> 1) ^ (both & 1 ? 0x9908b0df : 0);
      }
      next = 0;
    }
    let bits = state[next++];
    bits ^= bits >>> 11;
    bits ^= (bits << 7) & 0x9d2c5680;
    bits ^= (bits << 15) & 0xefc60000;
    bits ^= bits >>> 18;
    return (bits & 0xffffff) / 2 ** 24;
  };
}

// Normal with deviation 1, of two uniform numbers each.
export function normal(draw) {
  return () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
}
