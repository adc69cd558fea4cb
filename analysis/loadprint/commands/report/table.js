// The table's rows: headline, usual or all, filter, formulas and repeats on hover or tap; the contents' place.
const rows = document.getElementById("rows");
const tip = document.getElementById("tip");

const switches = [...document.querySelectorAll("[data-rows]")];

function press(kind) {
  rows.dataset.shown = kind;
  for (const one of switches) one.setAttribute("aria-pressed", String(one.dataset.rows === kind));
  citeNotes();
}

// Of the footnotes only those that a shown row cites; paper has every row and every note.
function citeNotes() {
  const cited = new Set();
  for (const link of rows.querySelectorAll('sup a[href^="#note-"]')) {
    if (link.checkVisibility()) cited.add(link.getAttribute("href").slice(1));
  }
  const notes = [...document.querySelectorAll(".notes li")];
  for (const note of notes) note.classList.toggle("uncited", !cited.has(note.id));
  const more = document.getElementById("notes-more");
  if (!more) return;
  const left = notes.filter((note) => note.classList.contains("uncited")).length;
  more.hidden = left === 0;
  more.textContent = left === 1 ? "1 more footnote belongs to rows not shown." : `${left} more footnotes belong to rows not shown.`;
}

// Rows whose text holds every word stay; a group stays with any of its rows, or all of them by its own title.
function filterRows(table, words, heading) {
  let found = 0;
  for (const body of table.tBodies) {
    const title = heading ? (body.querySelector(".group")?.textContent ?? "").toLowerCase() : "";
    let any = false;
    for (const row of body.rows) {
      if (row.classList.contains("group")) continue;
      const text = `${title} ${row.textContent.toLowerCase()}`;
      const out = !words.every((word) => text.includes(word));
      row.classList.toggle("out", out);
      if (!out) { any = true; found += 1; }
    }
    body.classList.toggle("out", !any);
  }
  table.classList.toggle("filtered", words.length > 0);
  return found;
}

const wordsOf = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);

if (rows) {
  const input = document.getElementById("row-filter");
  press(rows.querySelector("tr.headline") ? "headline" : "usual");
  for (const one of switches) one.addEventListener("click", () => press(one.dataset.rows));
  input.addEventListener("input", () => {
    const words = wordsOf(input);
    const found = filterRows(rows, words, true);
    document.getElementById("row-count").textContent = words.length ? `${found} of all rows` : "";
    document.getElementById("row-none").hidden = found > 0;
    citeNotes();
  });
  // a link to a row that is not shown shows it
  const reveal = () => {
    const row = rows.querySelector(`[id="${CSS.escape(decodeURIComponent(location.hash.slice(1)))}"]`);
    if (!row) return;
    input.value = "";
    filterRows(rows, [], true);
    if (row.checkVisibility()) citeNotes();
    else press(row.classList.contains("usual") ? "usual" : "further");
    row.scrollIntoView({ block: "center" });
  };
  window.addEventListener("hashchange", reveal);
  if (location.hash.startsWith("#row-")) reveal();
}

const settingFilter = document.getElementById("setting-filter");
settingFilter?.addEventListener("input", () => {
  filterRows(document.querySelector("#all-settings table"), wordsOf(settingFilter), false);
});

function tell(target) {
  const text = target.matches(".metric")
    ? [target.dataset.formula, target.dataset.better].filter(Boolean).join("\n")
    : target.dataset.repeats;
  if (!text) return;
  tip.textContent = text;
  tip.hidden = false;
  const at = target.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const below = at.bottom + 6 + own.height < innerHeight;
  tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - own.width - 8))}px`;
  tip.style.top = `${below ? at.bottom + 6 : at.top - own.height - 6}px`;
}

const untell = () => { tip.hidden = true; };
const TOLD = ".metric, [data-repeats]";
if (rows) {
  rows.addEventListener("pointerover", (event) => { const target = event.target.closest(TOLD); if (target) tell(target); else untell(); });
  rows.addEventListener("pointerleave", untell);
  rows.addEventListener("focusin", (event) => { const target = event.target.closest(TOLD); if (target) tell(target); });
  rows.addEventListener("focusout", untell);
  rows.addEventListener("click", (event) => { const target = event.target.closest(TOLD); if (target) tell(target); });
  window.addEventListener("scroll", untell, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") untell(); });
}

// The contents: open next to the page, folded above it; the section in view is marked.
const contents = document.querySelector("#contents details");
const wide = window.matchMedia("(min-width: 78rem)");
const fold = () => { contents.open = wide.matches; };
wide.addEventListener("change", fold);
fold();
const places = [...document.querySelectorAll("#contents a")].map((link) => [link, document.getElementById(link.hash.slice(1))]).filter(([, place]) => place);
let due = false;
function here() {
  due = false;
  let current = places[0];
  for (const pair of places) if (pair[1].getBoundingClientRect().top < innerHeight / 3) current = pair;
  for (const [link] of places) link.classList.toggle("here", link === current?.[0]);
}
window.addEventListener("scroll", () => { if (!due) { due = true; requestAnimationFrame(here); } }, { passive: true });
here();
