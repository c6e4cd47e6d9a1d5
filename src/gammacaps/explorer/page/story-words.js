// What the guided story says at each step: plain words with the figures that the page shows. Under 60 words each.

import { radius, two } from "./make.js";

export const TITLES = ["Vote", "Agree", "Tree", "Attack", "Break", "The network that does not break"];
export const LAST_ALONE = "At the strength it was trained for"; // of the last step where there is one network

export const NO_IMAGE = "There is no image yet. Draw something on the pad, or open an image file: the story goes on with it.";
export const FAILED = "This could not be worked out just now. Go on, or go back and try again.";

const left = (eps, { most }) => (eps === null ? `Up to ${radius(most)}, the most that this page tries, the attack did not break it` : `It breaks only at ${radius(eps)}`);
const score = (side, place) => two(side.scores[place]);

// names: of the classes. clean, attacked: what the network made of the image, {scores, predicted}. label: its class, or null.
export function vote({ names, label }) {
  const image = label === null ? "this image" : `this image of class ${names[label]}`;
  return `The network looks at ${image} patch by patch. Each small capsule, at the left of the tree, looks at one patch: the box marks that of the one whose line is lit. It votes: what should the capsules above it be, if what it sees is really there?`;
}

export function agree({ rounds, active, of }) {
  const times = rounds > 1 ? `In ${rounds} rounds each` : "Each";
  return `Now the votes are compared. Where many agree, the capsule above them grows long: it is active. ${times} capsule gives more of itself to the parent that it agrees with. Here ${active} of ${of} hidden capsules, in the middle, are active.`;
}

export function tree({ names, clean, label }) {
  const right = label === null ? "" : clean.predicted === label ? ", which is right" : `, but it is ${names[label]}`;
  return `What is left is a tree: each active capsule has one parent to which it gives most. Only what leads to the answer is lit. The answer is ${names[clean.predicted]}, with a score of ${score(clean, clean.predicted)}${right}. The sentence above the tree tells why.`;
}

export function attack({ names, clean, attacked, eps }) {
  const was = clean.predicted;
  const now = attacked.predicted === was ? `still ${names[was]}` : `now ${names[attacked.predicted]}`;
  return `Somebody wants to fool it. Each pixel may change by ${radius(eps)}, in the way that hurts this network most. The score of ${names[was]} goes from ${score(clean, was)} to ${score(attacked, was)}, and the answer is ${now}. Capsules that changed are outlined in orange.`;
}

// found: {eps, held, most} of the search for the weakest attack; changed: capsules. called: the network's name where there are two.
export function broken({ names, attacked, found, changed, called }) {
  const who = called ?? "the network";
  if (found.eps === null) return `How strong must an attack be? The page tried up to ${radius(found.most)}, where black turns to mid-grey, and ${who} still held. A stronger kind of attack might break it.`;
  return `How strong must an attack be? The page tried stronger and weaker ones: ${radius(found.eps)} breaks ${who}, ${radius(found.held)} does not. It now says ${names[attacked.predicted]}, with a score of ${score(attacked, attacked.predicted)}. ${changed} capsules chose another parent, appeared or vanished.`;
}

// Two networks: the weaker one broke at eps, or never (null); the other was attacked as strongly. found: of the search on the other.
export function holds({ names, weaker, stronger, trained, clean, attacked, eps, found }) {
  if (eps === null) return `On this image neither breaks: up to ${radius(found.most)}, the most that this page tries, both ${weaker} and ${stronger} hold against this attack. Leave the story, choose another image, and start it again.`;
  if (found.eps !== null && found.eps <= eps) return `On this image neither is stronger: both ${weaker} and ${stronger} break at ${radius(eps)}. Leave the story, choose another image, and start it again.`;
  const now = attacked.predicted === clean.predicted ? "still says" : "says";
  return `${stronger}${trained} has been attacked just as strongly, by ${radius(eps)}, with an attack made for it. It ${now} ${names[attacked.predicted]}, with a score of ${score(attacked, attacked.predicted)}. ${left(found.eps, found)}. No network withstands everything; this one withstands more than ${weaker}.`;
}

// One network: back at the radius of its training, if that was under attack. given: its name on the command line.
export function alone({ names, clean, attacked, eps, given, underAttack }) {
  const beside = `gammacaps explore ${given} OTHER`;
  if (!underAttack) return `This network was trained on clean images${underAttack === null ? ", or nobody wrote down how" : ""}. One that was trained under attack withstands more. ${beside} shows such a network beside it, on the same images, and this step then compares the two.`;
  const held = attacked.predicted === clean.predicted;
  const now = held ? `It holds: still ${names[attacked.predicted]}, with ${score(attacked, attacked.predicted)}.` : `Even there it says ${names[attacked.predicted]}: this image is a hard one.`;
  return `This network was trained under attacks of ${radius(eps)}, so here is that strength again. ${now} No network withstands everything. ${beside} shows another network beside it, say one trained on clean images.`;
}
