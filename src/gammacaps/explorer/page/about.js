// What the networks are: the page's title and the lines below it.

import { byId, make } from "./make.js";

const ROUTING = { sda: "scaled-distance-agreement routing", rba: "routing by agreement", em: "EM routing" };
const KINDS = { gamma: "a capsule network", matrix: "a matrix-capsule network", cnn: "a convolutional network" };

export function showNetworks(facts) {
  const first = facts[0];
  const [channels, height, width] = first.image_shape;
  byId("title").textContent = facts.length > 1 ? `${first.name} and ${facts[1].name}, side by side` : `What does ${first.name} see?`;
  document.title = `${facts.map(({ name }) => name).join(" and ")} · gammacaps explorer`;
  byId("about").replaceChildren(...facts.flatMap((each, place) => [place ? make("br") : "", described(each)]));
  byId("audited").replaceChildren(...facts.filter(({ audit }) => audit).map(({ name, audit }) => make("p", { class: "note" }, `The audit of ${name}: ${audit}`)));
  byId("size").textContent = `${width} × ${height} pixels${channels === 3 ? ", colour" : ""}`;
}

function described(facts) {
  const training = facts.way === null ? "" : ` trained ${facts.way}`;
  const hidden = facts.layers.length === 3 ? "hidden" : null; // there is but one
  const layers = facts.layers.map(({ name, capsules: n }, place) => `${n.toLocaleString("en")} ${place === 1 ? hidden ?? name : name}`);
  const capsules = layers.length ? ` ${layers.slice(0, -1).join(", ")} and ${layers.at(-1)} capsules.` : "";
  return `${facts.name}: ${KINDS[facts.architecture]}${facts.routing ? ` with ${ROUTING[facts.routing]}` : ""},${training || " how it was trained is not recorded"}.${capsules}`;
}
