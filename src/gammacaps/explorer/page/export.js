// The view as a file: trees as SVG or PNG, all figures as JSON, everything as one HTML page that needs nothing else.

import { address, state, toBase64 } from "./state.js";

const GAP = 24, HEAD = 30;

function save(name, content, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const ink = () => getComputedStyle(document.body).color;
const paper = () => getComputedStyle(document.body).backgroundColor;
const escaped = (words) => words.replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);

// All trees on show as one drawing: a row a network, each under its name.
export function wholeDrawing(networks) {
  const rows = networks.filter((each) => each.answer?.drawings).map((network) => ({
    network, trees: [...network.pair.querySelectorAll("svg")].map((svg) => clean(svg)),
  }));
  let y = 0, width = 0;
  const inside = [];
  for (const { network, trees } of rows) {
    let x = 0, tallest = 0;
    for (const [place, tree] of trees.entries()) {
      const { width: wide, height: high } = tree.viewBox.baseVal;
      const side = trees.length > 1 ? [", clean", `, attacked, eps ${network.answer.eps}`][place] : "";
      const { predicted } = network.answer.sides[place];
      const title = `${network.facts.name}${side}: taken for ${network.facts.class_names[predicted]}`;
      inside.push(`<text x="${x}" y="${y + 18}" font-size="16" font-weight="bold" fill="currentColor">${escaped(title)}</text>`);
      for (const [name, value] of Object.entries({ x, y: y + HEAD, width: wide, height: high })) tree.setAttribute(name, value);
      inside.push(new XMLSerializer().serializeToString(tree));
      x += wide + GAP;
      tallest = Math.max(tallest, high);
    }
    width = Math.max(width, x - GAP);
    y += HEAD + tallest + GAP;
  }
  const [w, h] = [width + 2 * GAP, y + GAP];
  return {
    width: w, height: h, some: rows.length > 0,
    svg: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${-GAP} ${-GAP} ${w} ${h}" width="${w}" height="${h}" font-family="system-ui, sans-serif" style="color:${ink()}">`
      + `<rect x="${-GAP}" y="${-GAP}" width="${w}" height="${h}" fill="${paper()}"/>${inside.join("")}</svg>`,
  };
}

// Without what only the page needs.
function clean(svg) {
  const copy = svg.cloneNode(true);
  copy.querySelectorAll(".ring").forEach((each) => each.remove());
  for (const each of copy.querySelectorAll("[data-capsule]")) for (const name of ["role", "tabindex", "aria-pressed", "aria-label"]) each.removeAttribute(name);
  copy.removeAttribute("style");
  return copy;
}

async function png(networks) {
  const { svg, width, height } = wholeDrawing(networks);
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

async function figures(networks, panel) {
  const plain = networks.map(({ facts, answer, off }) => {
    const { drawings, sides, ...rest } = answer ?? {};
    return { network: facts, off, ...rest };
  });
  const view = { ...state, image: state.image?.pixels ? { pixels: toBase64(state.image.pixels) } : state.image };
  return JSON.stringify({ format: 1, address: location.origin + "/" + (await address()), view, networks: plain, capsule: panel.data ?? null }, null, 1);
}

function attackInWords() {
  const [heading, words] = ["h2", "p"].map((tag) => document.createElement(tag));
  const chosen = (id) => document.getElementById(id).selectedOptions[0].textContent;
  heading.textContent = "The attack";
  words.textContent = `By ${chosen("attack-kind")}, towards ${chosen("target")}; each pixel may change by ${state.eps}.`;
  return [heading, words];
}

async function standalone() {
  const styles = await Promise.all(["report.css", "explorer.css"].map(async (name) => (await fetch(`/page/${name}`)).text()));
  const copy = document.documentElement.cloneNode(true);
  const pad = copy.querySelector("#pad");
  const picture = document.createElement("img");
  picture.src = document.getElementById("pad").toDataURL();
  picture.alt = "The image that the network was given";
  picture.id = "pad";
  pad.replaceWith(picture);
  // What these buttons show belongs to the view; what they do does not.
  for (const button of copy.querySelectorAll("#off button, .strongest button")) {
    const words = document.createElement("span");
    words.append(...button.childNodes);
    button.replaceWith(words);
  }
  copy.querySelectorAll("script, link, noscript, button, select, input, .menu, .hint, .keys, .cursor, .pad > .unseen, .progress, #pick, .skip, .tau, .check, .alert, .notice, #steps, #sides, #change, #story, .waiting, .patch, .readout").forEach((each) => each.remove());
  copy.querySelectorAll(".pad + .tools").forEach((each) => each.remove());
  if (state.eps > 0) copy.querySelector("#attack").replaceChildren(...attackInWords());
  else copy.querySelector(".controls").remove();
  copy.querySelectorAll(".side.under").forEach((each) => each.classList.remove("under"));
  copy.querySelectorAll(".side").forEach((each) => (each.style.gridArea = "auto"));
  if (!state.capsule) copy.querySelector("#capsule").remove();
  copy.querySelectorAll("[data-capsule]").forEach((each) => ["role", "tabindex", "aria-pressed"].forEach((name) => each.removeAttribute(name)));
  copy.querySelector("footer p").textContent = "A view of the gammacaps explorer, kept as one file.";
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
  const style = document.createElement("style");
  style.textContent = styles.join("\n");
  copy.querySelector("head").append(policy, style);
  return `<!doctype html>\n${copy.outerHTML}`;
}

// kind: svg, png, json, html or link. Gives words to say: of what was done where that can't be seen, or failed.
export async function exportView(kind, networks, panel) {
  if ((kind === "svg" || kind === "png") && !wholeDrawing(networks).some) return { failed: "There is no tree to export yet: draw something first." };
  if (kind === "svg") save("gammacaps-trees.svg", wholeDrawing(networks).svg, "image/svg+xml");
  if (kind === "png") save("gammacaps-trees.png", await png(networks));
  if (kind === "json") save("gammacaps-view.json", await figures(networks, panel), "application/json");
  if (kind === "html") save("gammacaps-view.html", await standalone(), "text/html");
  if (kind === "link") {
    try {
      await navigator.clipboard.writeText(location.origin + "/" + (await address()));
    } catch {
      return { failed: "The address can't be copied here: it stands in the browser's address bar." };
    }
    return { done: "The address of this view is copied." };
  }
  return {};
}
