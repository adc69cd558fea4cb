// What all figures share: the data of the page, colours of the current theme, how numbers are written.
const report = JSON.parse(document.getElementById("report-data").textContent);
const NOTHING = 65535;
const STEPS = 65534;

const colours = new Map();
document.addEventListener("theme", () => colours.clear());

// A custom property of the page's style, read once per theme.
function colour(name) {
  if (!colours.has(name)) {
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return colours.get(name);
}

const sideColour = (side) => colour(`side-${side % 8}`);

function translucent(hex, alpha) {
  const parts = [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
  return `rgba(${parts.join(",")},${alpha})`;
}

// Repeats of a side share its colour and grow fainter.
function runColour(run) {
  const { side, repeat } = report.runs[run];
  return translucent(sideColour(side), [1, 0.72, 0.5][(Math.max(1, repeat) - 1) % 3]);
}

const formats = [0, 1, 2, 3, 4].map((digits) =>
  new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));

// Four significant digits at most, no exponent between 0.0001 and a million.
function written(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4 || size > 8) return value.toExponential(2);
  return formats[Math.max(0, Math.min(4, 2 - size))].format(value);
}

// Numbers of an axis: as short as their distance allows.
function ticks(splits, unit) {
  const apart = splits.length > 1 ? Math.abs(splits[1] - splits[0]) : Math.abs(splits[0] || 1);
  let digits = 0;
  while (digits < 4 && Math.abs(apart * 10 ** digits - Math.round(apart * 10 ** digits)) > 1e-6 * apart * 10 ** digits) digits += 1;
  return splits.map((value) => {
    if (Math.abs(value) >= 1e6 && apart >= 1e5) return `${formats[apart >= 1e6 ? 0 : 1].format(value / 1e6)} M`;
    return formats[digits].format(value) + (unit || "");
  });
}

function clock(seconds, apart) {
  const sign = seconds < 0 ? "−" : "";
  const whole = Math.abs(seconds);
  if (whole < 120 && apart < 60) return `${sign}${Number.isInteger(Math.round(apart * 100) / 100) ? Math.round(whole) : whole.toFixed(1)} s`;
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = Math.floor(whole % 60);
  const padded = (number) => String(number).padStart(2, "0");
  return hours ? `${sign}${hours}:${padded(minutes)}:${padded(rest)}` : `${sign}${minutes}:${padded(rest)}`;
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const font = `11px ${getComputedStyle(document.body).fontFamily}`;

function axis(more) {
  return {
    stroke: () => colour("quiet"), font, gap: 4, size: 26,
    grid: { stroke: () => colour("faint"), width: 1 },
    ticks: { stroke: () => colour("rule"), width: 1, size: 4 },
    ...more,
  };
}

// The width of the numbers next to an axis.
function beside(chart, values) {
  const longest = (values || []).reduce((most, text) => Math.max(most, (text || "").length), 0);
  return Math.max(56, 14 + longest * 6.4);
}

// The summary next to a title, and the values under the pointer that replace it.
class Readout {
  constructor(figure) {
    this.place = figure.querySelector(".readout");
    this.idle = [...this.place.childNodes];
    this.pointed = false;
  }

  // parts: [side or null, text] each
  show(at, parts) {
    this.pointed = true;
    const shown = [element("span", "at", at)];
    for (const [name, text] of parts) {
      const summary = element("span", "summary");
      summary.append(element("i", `swatch ${name}`), element("b", "", text));
      shown.push(summary);
    }
    this.place.replaceChildren(...shown);
  }

  clear() {
    if (!this.pointed) return;
    this.pointed = false;
    this.place.replaceChildren(...this.idle);
  }
}

// Figures are drawn when they come near the window, all of them before printing.
const waiting = new Map();
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
}, { rootMargin: "800px 0px" });

function later(figure, make) {
  waiting.set(figure, make);
  near.observe(figure);
}

function draw(figure) {
  const make = waiting.get(figure);
  if (!make) return;
  waiting.delete(figure);
  near.unobserve(figure);
  const chart = make(figure);
  figure.dataset.drawn = "";
  const place = figure.querySelector(".canvas");
  new ResizeObserver(() => {
    const { clientWidth: width, clientHeight: height } = place;
    if (width && (Math.abs(width - chart.width) > 1 || Math.abs(height - chart.height) > 1)) chart.setSize({ width, height });
  }).observe(place);
  document.addEventListener("theme", () => chart.redraw());
}

const drawAll = () => { for (const figure of [...waiting.keys()]) draw(figure); };
window.addEventListener("beforeprint", drawAll);
window.matchMedia("print").addEventListener("change", drawAll);
