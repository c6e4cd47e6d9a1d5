"use strict";
// The page is complete without this. It adds: a choice of light and dark, tabs for the parse trees, a filter for the
// hidden capsules, folds that a link or a printer opens, and pictures that can be enlarged.

function theme(button) {
  const names = ["auto", "light", "dark"];
  const key = "gammacaps-theme";
  const remember = (name) => { try { localStorage.setItem(key, name); } catch { /* a page from a file may not */ } };
  const recall = () => { try { return localStorage.getItem(key); } catch { return null; } };
  const set = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = "Theme: " + name;
  };
  set(names.includes(recall()) ? recall() : "auto");
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
    set(next);
    remember(next);
  });
}

function make(tag, attributes, text) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

// One panel at a time; arrow keys, Home and End go from tab to tab.
function tabs(box, number) {
  const panels = [...box.querySelectorAll(":scope > .panel")];
  if (panels.length < 2) return;
  const list = make("div", { role: "tablist", "aria-label": box.dataset.tabs });
  const buttons = panels.map((panel, place) => {
    const heading = panel.querySelector("h3");
    const name = "tab-" + number + "-" + place;
    panel.id = "panel-" + number + "-" + place;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", name);
    heading.classList.add("tabbed");
    const button = make("button", { type: "button", role: "tab", id: name, "aria-controls": panel.id }, heading.textContent);
    button.addEventListener("click", () => choose(place));
    list.append(button);
    return button;
  });
  function choose(chosen) {
    buttons.forEach((button, place) => {
      button.setAttribute("aria-selected", String(place === chosen));
      button.tabIndex = place === chosen ? 0 : -1;
      panels[place].hidden = place !== chosen;
    });
  }
  list.addEventListener("keydown", (event) => {
    const now = buttons.indexOf(document.activeElement);
    const last = buttons.length - 1;
    const to = { ArrowRight: now < last ? now + 1 : 0, ArrowLeft: now > 0 ? now - 1 : last, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
    buttons[to].focus();
  });
  box.prepend(list);
  choose(0);
}

// A choice of class above each gallery: only the capsules that stand for it stay.
function filter(gallery, place) {
  const cards = [...gallery.querySelectorAll(".card")];
  const own = (card) => JSON.parse(card.dataset.classes);
  const names = [...new Set(cards.flatMap(own))].sort();
  if (names.length < 2) return;
  const name = "gallery-" + place;
  const line = make("p", { class: "filter" });
  const select = make("select", { id: name });
  const count = make("span", { role: "status" });
  select.append(make("option", { value: "" }, "any class"), ...names.map((each) => make("option", { value: each }, each)));
  select.addEventListener("change", () => {
    let shown = 0;
    for (const card of cards) {
      card.hidden = select.value !== "" && !own(card).includes(select.value);
      shown += card.hidden ? 0 : 1;
    }
    count.textContent = shown + " of " + cards.length;
  });
  count.textContent = cards.length + " of " + cards.length;
  line.append(make("label", { for: name }, "Show those that stand for "), select, " ", count);
  gallery.append(line);
}

// The fold that the address names is opened.
function follow() {
  const named = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let box = named; box; box = box.parentElement) {
    const fold = box.tagName === "DETAILS" ? box : box.querySelector(":scope > details");
    if (fold) fold.open = true;
  }
  if (named) named.scrollIntoView();
}

function openAll(button) {
  const folds = [...document.querySelectorAll(".folds section > details")];
  const name = () => { button.textContent = folds.every((fold) => fold.open) ? "Close all" : "Open all"; };
  button.hidden = folds.length === 0;
  button.addEventListener("click", () => {
    const open = !folds.every((fold) => fold.open);
    for (const fold of folds) fold.open = open;
    name();
  });
  for (const fold of folds) fold.addEventListener("toggle", name);
}

// What is scaled down to fit can be seen in its own size, and is then scrolled.
function enlarge(box) {
  if (!box.querySelector(".paper, .drawing")) return;
  const button = make("button", { type: "button", class: "enlarge", "aria-pressed": "false" }, "Enlarge");
  button.addEventListener("click", () => {
    const large = box.classList.toggle("enlarged");
    button.setAttribute("aria-pressed", String(large));
    button.textContent = large ? "Fit to the page" : "Enlarge";
  });
  box.after(button);
}

theme(document.getElementById("theme"));
document.querySelectorAll("[data-tabs]").forEach(tabs);
document.querySelectorAll("[data-gallery]").forEach(filter);
openAll(document.getElementById("all"));
if (matchMedia("(max-width: 48rem)").matches) document.querySelectorAll(".wide").forEach(enlarge);
addEventListener("hashchange", follow);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
follow();
