// The view as a file: a picture as SVG or PNG, all figures as JSON, everything as one HTML page that needs nothing else.

import { text } from "./ask.js";
import { radius } from "./make.js";
import { wholeDrawing } from "./picture.js";
import { address, state, toBase64 } from "./state.js";

function save(name, content, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const here = () => location.href.split("#")[0]; // without the view

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
  return JSON.stringify({ format: 1, address: here() + (await address()), view, networks: plain, capsule: panel.data ?? null }, null, 1);
}

function attackInWords() {
  const [heading, words] = ["h2", "p"].map((tag) => document.createElement(tag));
  const chosen = (id) => document.getElementById(id).selectedOptions[0].textContent;
  heading.textContent = "The attack";
  words.textContent = `By ${chosen("attack-kind")}, towards ${chosen("target")}; each pixel may change by ${radius(state.eps)}.`;
  return [heading, words];
}

async function standalone() {
  const styles = await Promise.all(["report.css", "explorer.css"].map((name) => text(`/page/${name}`)));
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
  if ((kind === "svg" || kind === "png") && !wholeDrawing(networks).some) return { failed: "There is nothing to export yet: draw something first." };
  if (kind === "svg") save("gammacaps-view.svg", wholeDrawing(networks).svg, "image/svg+xml");
  if (kind === "png") save("gammacaps-view.png", await png(networks));
  if (kind === "json") save("gammacaps-view.json", await figures(networks, panel), "application/json");
  if (kind === "html") save("gammacaps-view.html", await standalone(), "text/html");
  if (kind === "link") {
    try {
      await navigator.clipboard.writeText(here() + (await address()));
    } catch {
      return { failed: "The address can't be copied here: it stands in the browser's address bar." };
    }
    return { done: "The address of this view is copied." };
  }
  return {};
}
