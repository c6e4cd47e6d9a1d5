// The WebAssembly code of a product of matrices, put together byte by byte: no compiler is needed to build the page.
//
// product(a, b, c, groups, k, eights, step) adds a (4 groups x k) times b (k x 8 eights) to c. All are addresses of
// float32: a holds four rows side by side, and its next group begins `step` bytes on; b and c go row by row.

const I32 = 0x7f, V128 = 0x7b, VOID = 0x40;
const [A, B, C, GROUPS, K, EIGHTS, STEP] = [0, 1, 2, 3, 4, 5, 6];
const [ROW, AT_B, AT_C, LEFT, A_NOW, B_NOW, K_LEFT, C_1, C_2, C_3] = [7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const SUMS = 17, B_LOW = 25, B_HIGH = 26, WEIGHT = 27; // eight sums: four rows of two vectors

function whole(value) { // unsigned, seven bits a byte
  const bytes = [];
  do {
    const low = value & 0x7f;
    value >>>= 7;
    bytes.push(value ? low | 0x80 : low);
  } while (value);
  return bytes;
}

function signed(value) {
  const bytes = [];
  for (;;) {
    const low = value & 0x7f;
    value >>= 7;
    const done = (value === 0 && !(low & 0x40)) || (value === -1 && low & 0x40);
    bytes.push(done ? low : low | 0x80);
    if (done) return bytes;
  }
}

const get = (local) => [0x20, ...whole(local)];
const set = (local) => [0x21, ...whole(local)];
const number = (value) => [0x41, ...signed(value)];
const add = (...two) => [...two.flat(), 0x6a];
const shifted = (value, bits) => [...value, ...number(bits), 0x74];
const move = (local, by) => [...add(get(local), by), ...set(local)];
const vector = (code) => [0xfd, ...whole(code)];
const load = (address, offset) => [...get(address), ...vector(0x00), 4, ...whole(offset)];
const loadSame = (address, offset) => [...get(address), ...vector(0x09), 2, ...whole(offset)]; // one number, four times
const store = (address, offset, value) => [...get(address), ...value, ...vector(0x0b), 4, ...whole(offset)];
const times = (one, other) => [...one, ...other, ...vector(0xe6)];
const plus = (one, other) => [...one, ...other, ...vector(0xe4)];

// Repeats while the counter, one less each time, is not 0.
const repeat = (counter, ...inside) =>
  [0x03, VOID, ...inside.flat(), ...get(counter), ...number(1), 0x6b, 0x22, ...whole(counter), 0x0d, 0, 0x0b];

function body() {
  const rows = [AT_C, C_1, C_2, C_3];
  const steps = [];
  for (let row = 0; row < 4; row++) {
    steps.push(...loadSame(A_NOW, 4 * row), ...set(WEIGHT));
    for (const [half, values] of [B_LOW, B_HIGH].entries()) {
      const sum = SUMS + 2 * row + half;
      steps.push(...plus(get(sum), times(get(WEIGHT), get(values))), ...set(sum));
    }
  }
  const inner = repeat(K_LEFT,
    load(B_NOW, 0), set(B_LOW), load(B_NOW, 16), set(B_HIGH), steps, move(A_NOW, number(16)), move(B_NOW, get(ROW)));
  const halves = rows.flatMap((row, n) => [0, 1].map((half) => [row, 16 * half, SUMS + 2 * n + half]));
  const column = repeat(LEFT,
    add(get(AT_C), get(ROW)), set(C_1), add(get(C_1), get(ROW)), set(C_2), add(get(C_2), get(ROW)), set(C_3),
    halves.flatMap(([row, offset, sum]) => [...load(row, offset), ...set(sum)]),
    get(A), set(A_NOW), get(AT_B), set(B_NOW), get(K), set(K_LEFT), inner,
    halves.flatMap(([row, offset, sum]) => store(row, offset, get(sum))),
    move(AT_B, number(32)), move(AT_C, number(32)));
  const group = repeat(GROUPS,
    get(EIGHTS), set(LEFT), get(B), set(AT_B), get(C), set(AT_C), column,
    move(A, get(STEP)), move(C, shifted(get(ROW), 2)));
  return [...shifted(get(EIGHTS), 5), ...set(ROW), ...group, 0x0b];
}

const list = (entries) => [...whole(entries.length), ...entries.flat()];
const section = (kind, content) => [kind, ...whole(content.length), ...content];
const named = (words) => list([...words].map((letter) => [letter.charCodeAt(0)]));

export function assembled() {
  const locals = list([[...whole(10), I32], [...whole(11), V128]]);
  const code = [...locals, ...body()];
  return new Uint8Array([
    0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, list([[0x60, ...list(Array(7).fill([I32])), 0]])), // its type: seven addresses and counts
    ...section(3, list([[0]])),
    ...section(5, list([[0, 1]])), // memory, one page at first
    ...section(7, list([[...named("memory"), 2, 0], [...named("product"), 0, 0]])),
    ...section(10, list([[...whole(code.length), ...code]])),
  ]);
}
