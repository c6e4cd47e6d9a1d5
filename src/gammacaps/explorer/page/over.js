// What lies over the page while it is open, the Export menu and how to read a tree: Escape or a click elsewhere closes it.

const open = () => [...document.querySelectorAll("details.over[open]")];

export const isOver = () => open().length > 0;

export function closeWhenLeft() {
  document.addEventListener("click", (event) => {
    for (const each of open()) if (!each.contains(event.target)) each.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const each of open()) {
      if (each.contains(document.activeElement)) each.querySelector("summary").focus();
      each.open = false;
    }
  });
}
