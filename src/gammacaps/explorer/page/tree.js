// A tree on the page: the server's drawing, with capsules to point at, to walk through by keyboard and to choose.

const NS = "http://www.w3.org/2000/svg";
const SMALLEST = 0.55; // of its own size: below this its words can't be read

// Puts a drawing into a box. choose(layer, capsule) is called for a click, a tap nearby, or Enter; hover(name) with the
// capsule that is pointed at, or null. `chosen` has a ring; what `leads` names, and its ways, are lit at rest.
export function plant(box, drawing, readout, { chosen, leads, moved }, { choose, hover }) {
  box.innerHTML = drawing;
  const svg = box.querySelector("svg");
  svg.style.minHeight = `${SMALLEST * svg.viewBox.baseVal.height}px`;
  const capsules = [...svg.querySelectorAll("[data-capsule]")];
  let known = null; // measured only when needed: a tree is drawn many times while a slider moves
  const places = () => (known ??= new Map(capsules.map((each) => [each, middle(each)])));
  for (const each of capsules) {
    const title = each.querySelector("title")?.textContent ?? "";
    each.setAttribute("role", "button");
    each.setAttribute("aria-label", title);
    each.setAttribute("tabindex", "-1");
    each.setAttribute("aria-pressed", String(each.dataset.capsule === chosen));
  }
  const first = capsules.find((each) => each.dataset.capsule === chosen) ?? capsules.at(-1);
  first?.setAttribute("tabindex", "0");
  if (first?.dataset.capsule === chosen) ring(svg, first, "chosen");
  // The capsule under the pointer: that of a shape, or of the name beside it.
  const byName = new Map(capsules.map((each) => [each.dataset.capsule, each]));
  const under = ({ target }) => {
    const at = target.closest("[data-capsule], [data-name-of]");
    return at && byName.get(at.dataset.capsule ?? at.dataset.nameOf);
  };
  const pick = (each) => choose(...each.dataset.capsule.split(".").map(Number));

  const trace = (each) => {
    const name = each?.dataset.capsule ?? leads;
    box.classList.toggle("tracing", Boolean(name));
    svg.querySelectorAll(".lit").forEach((lit) => lit.classList.remove("lit"));
    readout.textContent = each?.querySelector("title")?.textContent ?? "";
    if (name) light(svg, name);
    hover(each?.dataset.capsule ?? null);
  };
  for (const name of moved) svg.querySelector(`[data-capsule="${name}"]`)?.classList.add("moved");
  if (leads) {
    box.classList.add("tracing");
    light(svg, leads);
  }
  svg.addEventListener("pointerover", (event) => trace(under(event)));
  svg.addEventListener("pointerleave", () => trace(null));
  svg.addEventListener("focusin", (event) => {
    const each = event.target.closest("[data-capsule]");
    if (!each || !each.matches(":focus-visible")) return;
    ring(svg, each, "focus");
    trace(each);
  });
  svg.addEventListener("focusout", () => {
    svg.querySelector(".ring.focus")?.remove();
    trace(null);
  });
  svg.addEventListener("click", (event) => {
    const each = under(event) ?? nearest(svg, places(), event);
    if (each) pick(each);
  });
  svg.addEventListener("keydown", (event) => {
    const now = event.target.closest("[data-capsule]");
    if (!now) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pick(now);
      return;
    }
    const next = neighbour(capsules, places(), now, event.key);
    if (!next) return;
    event.preventDefault();
    now.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus({ focusVisible: true });
  });
}

function middle(capsule) {
  const box = capsule.getBBox();
  return { x: box.x + box.width / 2, y: box.y + box.height / 2, layer: Number(capsule.dataset.capsule.split(".")[0]) };
}

function ring(svg, capsule, kind) {
  svg.querySelector(`.ring.${kind}`)?.remove();
  const box = capsule.getBBox();
  const circle = document.createElementNS(NS, "circle");
  circle.setAttribute("class", `ring ${kind}`);
  circle.setAttribute("cx", box.x + box.width / 2);
  circle.setAttribute("cy", box.y + box.height / 2);
  circle.setAttribute("r", Math.max(box.width, box.height) / 2 + (kind === "focus" ? 5 : 3));
  svg.append(circle);
}

// The capsule's way up to its class, and all that come to it from below.
function light(svg, name) {
  const edges = [...svg.querySelectorAll("path[data-from]")].map((path) => ({
    path, from: path.dataset.from.split(" "), to: path.dataset.to.split(" "),
  }));
  const lit = new Set([name]);
  for (const up of [true, false]) {
    const wave = [name];
    while (wave.length) {
      const at = wave.pop();
      for (const { path, from, to } of edges) {
        if (!(up ? from : to).includes(at)) continue;
        path.classList.add("lit");
        for (const next of up ? to : from) {
          if (!lit.has(next)) wave.push(next);
          lit.add(next);
        }
      }
    }
  }
  svg.querySelectorAll("[data-capsule]").forEach((each) => each.classList.toggle("lit", lit.has(each.dataset.capsule)));
}

// Fingers are wider than capsules.
function nearest(svg, places, event) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  let best = null, least = 18;
  for (const [each, spot] of places) {
    const away = Math.hypot(spot.x - at.x, spot.y - at.y);
    if (away < least) [best, least] = [each, away];
  }
  return best;
}

// Up and down within a layer, left and right to the nearest of the next.
function neighbour(capsules, places, now, key) {
  const at = places.get(now);
  const side = { ArrowLeft: -1, ArrowRight: 1 }[key];
  if (side) {
    const others = capsules.filter((each) => places.get(each).layer === at.layer + side);
    return others.sort((a, b) => Math.abs(places.get(a).y - at.y) - Math.abs(places.get(b).y - at.y))[0];
  }
  const column = capsules.filter((each) => places.get(each).layer === at.layer)
    .sort((a, b) => places.get(a).y - places.get(b).y || places.get(a).x - places.get(b).x);
  const move = { ArrowUp: -1, ArrowDown: 1 }[key];
  return move ? column[column.indexOf(now) + move] : undefined;
}
