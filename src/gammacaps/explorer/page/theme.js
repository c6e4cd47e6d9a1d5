// Light, dark, or as the system says; remembered together with the report's choice.

const NAMES = ["auto", "light", "dark"];
const KEY = "gammacaps-theme";

export function theme(button) {
  const set = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
  };
  let now = "auto";
  try { now = localStorage.getItem(KEY) ?? now; } catch { /* not every browser lets a page remember */ }
  set(NAMES.includes(now) ? now : "auto");
  button.addEventListener("click", () => {
    const next = NAMES[(NAMES.indexOf(document.documentElement.dataset.theme) + 1) % NAMES.length];
    set(next);
    try { localStorage.setItem(KEY, next); } catch { /* then it is forgotten */ }
  });
}
