// Why the network says what it says, in a sentence: the hidden capsules that lead to the answer, by their names.

import { fixed } from "./numbers.js";

const MOST = 3, ABSENT = 2; // capsules that a sentence names: that lead to the answer, and that are not active

// sets: the classes that each named capsule of the last hidden layer stands for, by its index.
export function why(tree, names, sets) {
  const below = tree.layers.length - 2;
  if (below < 1) return null;
  const nodes = tree.nodes[below], lengths = tree.layers[below].activations;
  const strength = (i) => (nodes.get(i).coupling ?? 0) * nodes.get(i).activation;
  const active = [...nodes.keys()].filter((i) => nodes.get(i).active).sort((a, b) => strength(b) - strength(a));
  const way = (i) => tree.ways.get(`${below}.${i}`);
  const led = active.filter((i) => way(i) === tree.predicted);
  const stands = (i) => Boolean(sets.get(i)?.includes(tree.predicted));
  const others = [...sets.keys()].filter((i) => lengths[i] <= tree.tau && !stands(i)).sort((a, b) => lengths[a] - lengths[b]);
  const astray = active.find((i) => way(i) !== tree.predicted && stands(i)); // it stands for the answer
  const called = (i) => names[`${below}.${i}`]?.name ?? i; // its name, or its number
  // Those that stand for the class say more than those that happen to lead to it.
  const there = [...new Set([...led].sort((a, b) => stands(b) - stands(a)).map(called))];
  const absent = [...new Set(others.map(called))].filter((name) => !there.includes(name)).slice(0, ABSENT);
  return { words: unsure(tree) || `${tree.classNames[tree.predicted]}, ${because(there, absent)}${but(tree, astray, way, called)}`, capsules: led.map((i) => [below, i]) };
}

// That a capsule which stands for the answer votes for something else; empty where none does.
function but({ classNames }, astray, way, called) {
  if (astray === undefined || (way(astray) ?? null) === null) return "";
  const name = told([called(astray)]);
  return ` ${name[0].toUpperCase()}${name.slice(1)} is active too, but votes for ${classNames[way(astray)]}.`;
}

// That no class capsule is active, and what the answer then is worth; empty where one is.
function unsure({ layers, tau, classNames, predicted }) {
  const longest = Math.max(...layers.at(-1).activations);
  if (longest > tau) return "";
  return `No class capsule is active (longer than ${tau}): ${classNames[predicted]} is named only because something must be answered, and its capsule is the longest, ${fixed(longest, 2)}.`;
}

function because(there, absent) {
  if (!there.length) return "the longest class capsule, though no active capsule chose it.";
  const first = there.slice(0, MOST);
  const missing = absent.length ? `; ${told(absent)} ${verb(absent)} not` : "";
  return `${there.length > MOST ? "mainly " : ""}because ${told(first)} ${verb(first)} active${missing}.`;
}

const verb = (names) => (names.length === 1 ? "is" : "are");
const plural = (names) => (names.length === 1 ? "capsule" : "capsules");

// "the capsules for shoes and tops and capsule 4": by name where there is one, else by number.
function told(some) {
  const named = some.filter((one) => typeof one === "string");
  const numbered = some.filter((one) => typeof one === "number").map(String);
  const parts = named.length ? [`the ${plural(named)} for ${joined(named)}`] : [];
  if (numbered.length) parts.push(`${plural(numbered)} ${joined(numbered)}`);
  return parts.join(" and ");
}

// Names that hold commas or an "and" themselves are kept apart by quotes.
function joined(names) {
  const shown = names.map((name) => (names.length > 1 && (name.includes(",") || name.includes(" and ")) ? `“${name}”` : name));
  return shown.length === 1 ? shown[0] : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}
