// Image files that come to the page: chosen by the button, dropped on it, or pasted.

import { byId } from "./make.js";

export function takeFiles(take) {
  byId("file").addEventListener("change", (event) => {
    if (event.target.files[0]) take(event.target.files[0]);
    event.target.value = "";
  });
  const box = document.querySelector(".pad");
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget ?? box.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => {
    if (event.clipboardData?.files[0]) take(event.clipboardData.files[0]);
  });
}
