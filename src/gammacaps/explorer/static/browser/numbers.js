// Numbers as Python writes and rounds them: a tie goes to the even neighbour.

export function even(value) {
  const low = Math.floor(value), rest = value - low;
  return rest === 0.5 ? low + (low % 2) : Math.round(value);
}

// With so many digits after the point.
export function fixed(value, digits) {
  const tie = Number.isInteger(value * 2 ** (digits + 1)); // nothing else lies in the middle of two decimals
  return (tie ? even(value * 10 ** digits) / 10 ** digits : value).toFixed(digits);
}

export const four = (value) => Number(fixed(value, 4)) + 0; // no -0

export const largest = (values) => values.reduce((best, value, place) => (value > values[best] ? place : best), 0);
