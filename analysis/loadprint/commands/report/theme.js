// Light, dark, or what the system asks for. Runs in the head, so that the page never flashes.
(() => {
  "use strict";
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const choices = ["auto", "light", "dark"];
  let chosen = "auto";
  try { chosen = localStorage.getItem("loadprint-theme") || "auto"; } catch { /* a file may have no storage */ }
  if (!choices.includes(chosen)) chosen = "auto";

  function apply(theme) {
    root.dataset.theme = theme || (chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen);
    document.dispatchEvent(new Event("theme"));
  }

  root.classList.add("scripted");
  apply();
  dark.addEventListener("change", () => apply());
  // paper is white
  const paper = window.matchMedia("print");
  paper.addEventListener("change", () => apply(paper.matches ? "light" : ""));
  window.addEventListener("beforeprint", () => apply("light"));
  window.addEventListener("afterprint", () => apply());

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const name = document.getElementById("theme-name");
    const label = () => {
      name.textContent = chosen[0].toUpperCase() + chosen.slice(1);
      button.setAttribute("aria-label", `Colours: ${chosen}`);
    };
    button.hidden = false;
    label();
    button.addEventListener("click", () => {
      chosen = choices[(choices.indexOf(chosen) + 1) % choices.length];
      try { localStorage.setItem("loadprint-theme", chosen); } catch { /* as above */ }
      label();
      apply();
    });
  });
})();
