// Elements from data: text is only ever text.

export function make(tag, attributes = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...inside.filter((each) => each !== null && each !== ""));
  return element;
}

export const byId = (id) => document.getElementById(id);
// A radius as people write it: a short decimal, else 8/255 for what counts the steps of a byte; as gammacaps.radius has it.
export function radius(eps) {
  const steps = Math.round(255 * eps), isShort = Math.abs(Number(eps.toPrecision(3)) - eps) <= 1e-9;
  const counts = steps > 0 && steps <= 255 && Math.abs(255 * eps - steps) < 0.002;
  return counts && !isShort ? `${steps}/255` : String(Number(eps.toPrecision(6)));
}
export const two = (value) => value.toFixed(2);

const SIGNS = { pass: "M3.5 8.5l3 3l6 -7", warn: "M8 3.2v6M8 12v.6", fail: "M4 4l8 8M12 4l-8 8", skip: "M4 8h8" };

// A verdict as in the report: a shape and a word, so that colour is never needed.
export function badge(verdict, word) {
  const element = make("span", { class: `badge ${verdict}` });
  element.innerHTML = `<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${SIGNS[verdict]}"/></svg>`;
  element.append(word);
  return element;
}

// A table of names, bars and figures. rows: {name, value, second, top}; second is a value to compare with, or null.
export function bars(rows, caption) {
  const line = ({ name, value, second = null, top }) => {
    const bar = (share, kind) => {
      const inside = make("i");
      inside.style.width = `${100 * Math.min(1, share)}%`;
      return make("span", { class: `track ${kind}` }, inside);
    };
    const figures = second === null
      ? [top ? make("b", {}, two(value)) : two(value)]
      : [make("span", { class: "was" }, `${two(value)} → `), make("b", {}, two(second))];
    return make("tr", { class: top ? "top" : "" },
      make("th", { scope: "row", title: name }, name),
      make("td", {}, bar(value, "first"), second === null ? null : bar(second, "second")),
      make("td", { class: second === null ? "figures" : "figures double" }, ...figures));
  };
  return make("table", { class: "bars", "aria-label": caption }, make("tbody", {}, ...rows.map(line)));
}
