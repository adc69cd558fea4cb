// The table: the first screen, default or all rows, a filter, formulas and repeats on hover or tap.
const rows = document.getElementById("rows");
const switches = [...document.querySelectorAll("[data-rows]")];

function press(kind) {
  rows.dataset.shown = kind;
  for (const one of switches) one.setAttribute("aria-pressed", String(one.dataset.rows === kind));
}

// Rows that contain every word of the input remain; the words may also be in the group's title.
function filterRows(table, input) {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const body of table.tBodies) {
    const title = body.querySelector(".group")?.textContent ?? "";
    const own = [...body.rows].filter((row) => !row.classList.contains("group"));
    for (const row of own) {
      const text = `${title} ${row.textContent}`.toLowerCase();
      row.classList.toggle("out", !words.every((word) => text.includes(word)));
    }
    const shown = own.filter((row) => !row.classList.contains("out")).length;
    body.classList.toggle("out", !shown);
    found += shown;
  }
  table.classList.toggle("filtered", words.length > 0);
  return words.length ? `${found} of all rows` : "";
}

if (rows) {
  const input = document.getElementById("row-filter");
  const count = document.getElementById("row-count");
  const filter = () => { count.textContent = filterRows(rows, input); };
  // a link to a row shows it
  const reveal = () => {
    const row = location.hash.startsWith("#row-") && document.getElementById(location.hash.slice(1));
    if (!row) return;
    input.value = "";
    filter();
    if (!row.checkVisibility()) press(row.classList.contains("usual") ? "usual" : "further");
    row.scrollIntoView({ block: "center" });
  };
  press(rows.querySelector("tr.first") ? "first" : "usual");
  for (const one of switches) one.addEventListener("click", () => press(one.dataset.rows));
  input.addEventListener("input", filter);
  window.addEventListener("hashchange", reveal);
  reveal();
}

const settingFilter = document.getElementById("setting-filter");
settingFilter?.addEventListener("input", () => filterRows(document.querySelector("#all-settings table"), settingFilter));

const tip = document.getElementById("tip");
const hideTip = () => { tip.hidden = true; };
for (const kind of ["pointerover", "focusin", "click"]) {
  document.addEventListener(kind, ({ target }) => {
    const about = target.closest("[data-tip]");
    tip.hidden = !about;
    if (!about) return;
    tip.textContent = about.dataset.tip;
    const at = about.getBoundingClientRect();
    const below = at.bottom + 6 + tip.offsetHeight < innerHeight;
    tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${below ? at.bottom + 6 : at.top - tip.offsetHeight - 6}px`;
  });
}
window.addEventListener("scroll", hideTip, { passive: true });
document.addEventListener("keydown", ({ key }) => { if (key === "Escape") hideTip(); });
document.querySelector("#contents details").open = window.matchMedia("(min-width: 78rem)").matches;
