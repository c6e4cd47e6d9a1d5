"use strict";
// The page is complete without this. It adds: a choice of light and dark, tabs for the parse trees, a filter for the
// hidden capsules, and the section at hand marked in the contents.

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
function tabs(box) {
  const panels = [...box.querySelectorAll(":scope > .panel")];
  if (panels.length < 2) return;
  const list = make("div", { role: "tablist", "aria-label": box.dataset.tabs });
  const buttons = panels.map((panel, place) => {
    const heading = panel.querySelector("h3");
    const name = "tab-" + place;
    panel.id = "panel-" + place;
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

// A choice of class above each gallery: only the capsules that serve it stay.
function filter(gallery, place) {
  const cards = [...gallery.querySelectorAll(":scope > .card")];
  const serves = (card) => JSON.parse(card.dataset.serves);
  const names = [...new Set(cards.flatMap(serves))].sort();
  if (names.length < 2) return;
  const name = "gallery-" + place;
  const line = make("p", { class: "filter" });
  const select = make("select", { id: name });
  const count = make("span", { role: "status" });
  select.append(make("option", { value: "" }, "any class"), ...names.map((each) => make("option", { value: each }, each)));
  select.addEventListener("change", () => {
    let shown = 0;
    for (const card of cards) {
      card.hidden = select.value !== "" && !serves(card).includes(select.value);
      shown += card.hidden ? 0 : 1;
    }
    count.textContent = shown + " of " + cards.length;
  });
  count.textContent = cards.length + " of " + cards.length;
  line.append(make("label", { for: name }, "Show those that serve "), select, " ", count);
  gallery.before(line);
}

function follow(links) {
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links) {
        if (link.hash === "#" + entry.target.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const section of document.querySelectorAll("main > section")) seen.observe(section);
}

theme(document.getElementById("theme"));
document.querySelectorAll("[data-tabs]").forEach(tabs);
document.querySelectorAll("[data-gallery]").forEach(filter);
follow([...document.querySelectorAll("nav a")]);
// On a phone the contents would fill the first screen.
if (matchMedia("(max-width: 68rem)").matches) document.querySelector("nav details").open = false;
