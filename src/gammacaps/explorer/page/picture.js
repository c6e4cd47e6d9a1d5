// The view as one drawing that explains itself: images, answers, scores, trees and a legend, a block for each network.

import { radius, two } from "./make.js";
import { isChanged, state } from "./state.js";

const GAP = 24, SIDE = 168, LINE = 20, SCORES = 420, LETTER = 7.2; // the last: a letter's width, of 14 pixels
const CHANGED = { turn: (value) => `turned by ${value}°`, right: (value) => `moved right by ${value} px`, down: (value) => `moved down by ${value} px`, blur: (value) => `blurred by ${value} px`, dark: (value) => `darkened by ${Math.round(100 * value)}%` };

const escaped = (words) => String(words).replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);
const text = (x, y, words, { size = 14, more = "" } = {}) => `<text x="${x}" y="${y}" font-size="${size}" fill="currentColor" ${more}>${escaped(words)}</text>`;
const bold = 'font-weight="bold"';

// A colour of the page as it is just now, light or dark.
function colour(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function wrapped(words, width) {
  const lines = [""];
  for (const word of words.split(" ")) {
    if (lines.at(-1) && (lines.at(-1).length + 1 + word.length) * LETTER > width) lines.push("");
    lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

// What was done to the image, in words.
function done({ facts, answer }) {
  const attacked = answer.sides.length > 1;
  const aim = attacked && answer.target !== null && answer.target !== undefined ? ` towards ${facts.class_names[answer.target]}` : "";
  const kind = facts.attacks.find(({ name }) => name === answer.attack)?.words ?? answer.attack;
  return [attacked ? `attacked by ${kind}${aim}, eps ${radius(answer.eps)}` : "",
    ...(isChanged() ? Object.entries(state.change).filter(([, value]) => value !== 0).map(([name, value]) => CHANGED[name](value)) : [])].filter(Boolean).join("; ");
}

function images({ facts, answer }, y) {
  const { sides, label, difference } = answer;
  const name = (place) => facts.class_names[place];
  const told = ({ predicted, scores }) => `${name(predicted)} ${two(scores[predicted])}`;
  const shots = sides.map((side, place) => [side.png, sides.length > 1 ? ["clean", "attacked"][place] : "image", told(side)]);
  if (difference) shots.push([difference.png, `difference × ${+difference.magnified.toFixed(1)}`, "mid-grey: unchanged"]);
  const drawn = shots.map(([png, what, words], place) => {
    const x = place * (SIDE + GAP);
    return `<image x="${x}" y="${y}" width="${SIDE}" height="${SIDE}" href="${png}" style="image-rendering:pixelated" preserveAspectRatio="xMidYMid meet"/>`
      + text(x, y + SIDE + LINE, what, { size: 13 }) + text(x, y + SIDE + 2 * LINE, words, { more: bold });
  });
  const truth = label === null ? "" : text(0, y + SIDE + 3 * LINE, `The test image is of the class ${name(label)}.`, { size: 13 });
  return { drawn: drawn.join("") + truth, width: shots.length * (SIDE + GAP), height: SIDE + 3 * LINE };
}

// Every class with its figures and bars; the highest where there are many.
function scores({ facts, answer }, x, y) {
  const [first, second] = answer.sides.length > 1 ? answer.sides : answer.before ? [answer.before, answer.sides[0]] : answer.sides;
  const last = second ?? first;
  const order = last.scores.map((_, place) => place);
  if (order.length > 20) order.sort((a, b) => last.scores[b] - last.scores[a]);
  const rows = order.slice(0, 20).map((place, row) => {
    const at = y + row * LINE;
    const bar = (side, kind, shift) => `<rect x="${x + 120}" y="${at + shift}" width="${(180 * Math.min(1, side.scores[place])).toFixed(1)}" height="5" rx="2" fill="${colour(kind)}"/>`;
    const figures = second ? `${two(first.scores[place])} → ${two(second.scores[place])}` : two(first.scores[place]);
    return text(x, at + 12, facts.class_names[place].slice(0, 15), { size: 13, more: place === last.predicted ? bold : "" })
      + bar(first, "s0", second ? 2 : 5) + (second ? bar(second, "s1", 9) : "") + text(x + 312, at + 12, figures, { size: 13, more: place === last.predicted ? bold : "" });
  });
  const words = answer.sides.length > 1 ? ["clean", "attacked"] : ["all capsules on", "some switched off"];
  const key = second ? words.map((word, place) => `<rect x="${x + 120 + 130 * place}" y="${y + rows.length * LINE + 6}" width="20" height="6" rx="2" fill="${colour(`s${place}`)}"/>${text(x + 146 + 130 * place, y + rows.length * LINE + 14, word, { size: 13 })}`).join("") : "";
  return { drawn: rows.join("") + key, width: SCORES, height: (rows.length + 1) * LINE };
}

// The trees on show, without what only the page needs.
function trees({ pair, answer }, y) {
  let x = 0, tallest = 0;
  const drawn = [...pair.querySelectorAll("svg")].map((svg, place) => {
    const copy = svg.cloneNode(true);
    const { width, height } = svg.viewBox.baseVal;
    copy.querySelectorAll(".ring").forEach((each) => each.remove());
    for (const each of copy.querySelectorAll("[data-capsule]")) for (const name of ["role", "tabindex", "aria-pressed", "aria-label", "class"]) each.removeAttribute(name);
    copy.querySelectorAll(".moved").forEach((each) => each.classList.remove("moved"));
    copy.removeAttribute("style");
    for (const [name, value] of Object.entries({ x, y: y + LINE, width, height })) copy.setAttribute(name, value);
    const title = text(x, y + 8, answer.sides.length > 1 ? ["The clean image’s tree", "The attacked image’s tree"][place] : "The tree", { more: bold });
    x += width + GAP;
    tallest = Math.max(tallest, height + LINE);
    return title + new XMLSerializer().serializeToString(copy);
  });
  return { drawn: drawn.join(""), width: Math.max(0, x - GAP), height: tallest };
}

function legend(y, width, changed) {
  const ring = (more) => (x, at) => `<circle cx="${x + 8}" cy="${at - 5}" r="7" fill="none" stroke="currentColor" ${more}/>`;
  const mark = "currentColor"; // as in the trees, whose orange is the page’s alone
  const signs = [
    [ring('stroke-width="1.5" style="fill:currentColor;fill-opacity:0.35"'), "active capsule, coloured by the class to which its path leads"],
    [ring('stroke-dasharray="2 2"'), "not active"],
    [(x, at) => `<path d="M${x} ${at - 5}h18" stroke="currentColor" stroke-width="4"/>`, "the chosen parent: the wider, the stronger the coupling"],
    ...(changed ? [
      [ring(`style="stroke:${mark}" stroke-width="3"`), "changed its parent"],
      [(x, at) => `<rect x="${x + 1}" y="${at - 12}" width="14" height="14" fill="none" stroke="${mark}" stroke-width="2"/>`, "appeared"],
      [(x, at) => `<path d="M${x + 2} ${at - 11}l12 12m0 -12l-12 12" stroke="${mark}" stroke-width="2"/>`, "vanished"],
    ] : []),
  ];
  let x = 0, at = y;
  const drawn = signs.map(([sign, words]) => {
    const wide = 26 + words.length * LETTER + GAP;
    if (x > 0 && x + wide > width) [x, at] = [0, at + LINE + 2];
    const one = sign(x, at) + text(x + 26, at, words, { size: 13 });
    x += wide;
    return one;
  });
  return { drawn: drawn.join(""), height: at - y + LINE };
}

// Gives {svg, width, height, some}: some is false where nothing has been answered yet.
export function wholeDrawing(networks) {
  const shown = networks.filter((each) => each.answer);
  const inside = [];
  let y = 0, width = 0;
  for (const network of shown) {
    const { facts, answer, off } = network;
    inside.push(text(0, y + 16, facts.name, { size: 20, more: bold }));
    const words = [done(network), off.length ? `switched off: ${off.map((capsule) => network.tell([network.place, ...capsule])).join(", ")}` : ""].filter(Boolean).join("; ");
    if (words) inside.push(text(0, y + 38, words));
    y += words ? 54 : 32;
    const left = images(network, y);
    const right = scores(network, left.width, y);
    inside.push(left.drawn, right.drawn);
    y += Math.max(left.height, right.height) + GAP;
    width = Math.max(width, left.width + right.width);
    if (answer.drawings) {
      const room = Math.max(width, 760);
      answer.sides.forEach((side, place) => {
        const which = answer.sides.length > 1 ? ["Clean: ", "Attacked: "][place] : "";
        for (const line of side.why ? wrapped(which + side.why.words, room) : []) inside.push(text(0, (y += LINE) - 6, line));
      });
      y += GAP;
      const grown = trees(network, y);
      inside.push(grown.drawn);
      y += grown.height + GAP;
      width = Math.max(width, grown.width);
    }
  }
  if (shown.some(({ answer }) => answer.drawings)) {
    const key = legend(y + 8, width, shown.some(({ answer }) => answer.changed));
    inside.push(key.drawn);
    y += key.height + 8;
  }
  const [w, h] = [width + 2 * GAP, y + 2 * GAP];
  const { color, backgroundColor } = getComputedStyle(document.body);
  return {
    width: w, height: h, some: shown.length > 0,
    svg: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${-GAP} ${-GAP} ${w} ${h}" width="${w}" height="${h}" font-family="system-ui, sans-serif" style="color:${color}">`
      + `<rect x="${-GAP}" y="${-GAP}" width="${w}" height="${h}" fill="${backgroundColor}"/>${inside.join("")}</svg>`,
  };
}
