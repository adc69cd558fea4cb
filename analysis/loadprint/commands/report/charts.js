// Charts over time: one grid of seconds for all, one cursor, one zoom, one choice of runs.
const times = report.grid
  ? Array.from({ length: report.grid.points }, (_, place) => report.grid.begin + place * report.grid.step)
  : [];
const courses = new Map(report.courses.map((course) => [course.key, course]));
const charts = new Set();
const drawn = new Set(report.courses.flatMap((course) => course.lines.map((line) => line.run)));
const visible = new Set();
let zoomed = null;
const MARKED = new Set(["throughput", "disk", "mysql"]);

// Values of every line of a course, in the unit that is shown; null where there is none.
function unpacked(course) {
  const bytes = Uint8Array.from(atob(course.values), (sign) => sign.charCodeAt(0));
  const codes = new DataView(bytes.buffer);
  return course.lines.map((line, place) => times.map((_, cell) => {
    const code = codes.getUint16(2 * (place * times.length + cell), true);
    if (code === NOTHING) return null;
    return (line.low + (code / STEPS) * (line.high - line.low)) * course.factor;
  }));
}

function firstOf(side) {
  return [...visible].sort((a, b) => a - b).find((run) => report.runs[run].side === side);
}

// Shades the phases outside of the measured window.
function shade(chart, runs) {
  const run = runs.find((one) => one !== undefined && report.runs[one].phases.length);
  if (run === undefined) return;
  const { ctx, bbox } = chart;
  const ratio = window.devicePixelRatio || 1;
  const at = (seconds) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, chart.valToPos(seconds, "x", true)));
  const phases = report.runs[run].phases;
  const measured = phases.find(([name]) => name === "measure");
  if (!measured) return;
  ctx.save();
  ctx.fillStyle = colour("outside");
  ctx.fillRect(bbox.left, bbox.top, at(measured[1]) - bbox.left, bbox.height);
  ctx.fillRect(at(measured[2]), bbox.top, bbox.left + bbox.width - at(measured[2]), bbox.height);
  ctx.restore();
}

// Names of the phases, in the strip above the plot.
function namePhases(chart, runs) {
  const run = runs.find((one) => one !== undefined && report.runs[one].phases.length);
  if (run === undefined) return;
  const { ctx, bbox } = chart;
  const ratio = window.devicePixelRatio || 1;
  const at = (seconds) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, chart.valToPos(seconds, "x", true)));
  ctx.save();
  ctx.font = `${10 * ratio}px ${font.slice(5)}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  ctx.fillStyle = colour("quiet");
  for (const [name, begin, end] of report.runs[run].phases) {
    const left = at(begin);
    if (name === "measure" || at(end) - left <= ctx.measureText(name).width + 2 * ratio) continue;
    ctx.fillText(name, left, bbox.top - 2 * ratio);
  }
  ctx.restore();
}

function markSpikes(chart, runs) {
  const { ctx, bbox } = chart;
  const ratio = window.devicePixelRatio || 1;
  ctx.save();
  for (const run of runs) {
    for (const [, begin, end] of report.runs[run].spikes) {
      const left = chart.valToPos(begin, "x", true);
      const width = Math.max(2 * ratio, chart.valToPos(end, "x", true) - left);
      if (left + width < bbox.left || left > bbox.left + bbox.width) continue;
      ctx.fillStyle = translucent(sideColour(report.runs[run].side), 0.14);
      ctx.fillRect(left, bbox.top, width, bbox.height);
      ctx.fillStyle = sideColour(report.runs[run].side);
      ctx.fillRect(left, bbox.top, width, 3 * ratio);
    }
  }
  ctx.restore();
}

// Shows the seconds from `range[0]` to `range[1]` in all charts; null: everything.
function zoom(range) {
  zoomed = range;
  const [min, max] = range || [times[0], times[times.length - 1]];
  for (const chart of charts) if (chart.scales.x.min !== min || chart.scales.x.max !== max) chart.setScale("x", { min, max });
  document.getElementById("zoom-out").hidden = range === null;
}

function timeOptions(figure, hooks) {
  const place = figure.querySelector(".canvas");
  return {
    width: place.clientWidth, height: place.clientHeight, legend: { show: false }, padding: [16, 4, 0, 0],
    cursor: {
      y: false, points: { size: 5 }, drag: { x: true, y: false, setScale: false },
      sync: { key: "time", setSeries: false, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
      bind: { dblclick: () => () => { zoom(null); return null; } },
    },
    scales: {
      x: { time: false, min: times[0], max: times[times.length - 1] },
      y: { range: (chart, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      axis({ space: 64, values: (_, splits) => splits.map((one) => clock(one, splits[1] - splits[0])) }),
      axis({ size: beside, space: 28, values: (_, splits) => ticks(splits) }),
    ],
    hooks: {
      ...hooks,
      setSelect: [(chart) => {
        const { left, width } = chart.select;
        if (width > 3) zoom([chart.posToVal(left, "x"), chart.posToVal(left + width, "x")]);
        chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      }],
    },
  };
}

function register(chart, figure) {
  charts.add(chart);
  chart.setScale("x", zoomed ? { min: zoomed[0], max: zoomed[1] } : { min: times[0], max: times[times.length - 1] });
  figure.querySelector(".canvas").addEventListener("keydown", (event) => byKey(event, chart));
  return chart;
}

// Lines: one per run.
function lineChart(figure, course) {
  const readout = new Readout(figure);
  const values = unpacked(course);
  const options = timeOptions(figure, {
    drawClear: [(chart) => shade(chart, [...visible].sort((a, b) => a - b))],
    draw: [(chart) => {
      if (MARKED.has(course.section)) markSpikes(chart, [...visible]);
      namePhases(chart, [...visible].sort((a, b) => a - b));
    }],
    setCursor: [(chart) => {
      const { idx } = chart.cursor;
      if (idx === null || idx === undefined) { readout.clear(); return; }
      const parts = report.sides.map((_, side) => {
        const texts = course.lines.flatMap((line, place) =>
          (report.runs[line.run].side === side && visible.has(line.run) ? [written(values[place][idx])] : []));
        return [`side-${side % 8}`, texts.join("  ")];
      });
      readout.show(clock(times[idx], report.grid.step), parts.filter(([, text]) => text));
    }],
  });
  options.series = [{}, ...course.lines.map((line) => ({
    show: visible.has(line.run), stroke: () => runColour(line.run), width: 1.3, spanGaps: course.sparse,
    points: { show: course.sparse, size: 4 },
  }))];
  const chart = new uPlot(options, [times, ...values], figure.querySelector(".canvas"));
  chart.choose = () => chart.batch(() => course.lines.forEach((line, place) => {
    if (chart.series[place + 1].show !== visible.has(line.run)) chart.setSeries(place + 1, { show: visible.has(line.run) });
  }));
  return register(chart, figure);
}

// A stack: the parts of one run of one side, the uppermost drawn first.
function stackChart(figure, course, side) {
  const readout = new Readout(figure);
  const values = unpacked(course);
  let own = new Map();
  function stacked() {
    const run = firstOf(side);
    own = new Map(course.lines.flatMap((line, place) => (line.run === run ? [[line.part, values[place]]] : [])));
    let below = times.map(() => 0);
    const sums = course.parts.map((part) => {
      const line = own.get(part);
      below = below.map((sum, cell) => (line && line[cell] !== null && sum !== null ? sum + line[cell] : line ? null : sum));
      return own.size ? below : times.map(() => null);
    });
    return [times, ...sums.reverse()];
  }
  const options = timeOptions(figure, {
    drawClear: [(chart) => shade(chart, [firstOf(side)])],
    draw: [(chart) => namePhases(chart, [firstOf(side)])],
    setCursor: [(chart) => {
      const { idx } = chart.cursor;
      if (idx === null || idx === undefined || !own.size) { readout.clear(); return; }
      const run = report.runs[firstOf(side)];
      const parts = course.parts.filter((part) => own.has(part)).map((part) => [`part-${part}`, written(own.get(part)[idx])]);
      readout.show(`${run.id} ${clock(times[idx], report.grid.step)}`, parts);
    }],
  });
  if (course.ceiling) options.scales.y.range = (chart, low, high) => [0, Math.max(course.ceiling, high || 0)];
  options.series = [{}, ...[...course.parts].reverse().map((part) => ({
    stroke: () => colour("paper"), width: 0.5, fill: () => colour(`part-${part}`), points: { show: false },
  }))];
  const chart = new uPlot(options, stacked(), figure.querySelector(".canvas"));
  chart.choose = () => {
    figure.hidden = firstOf(side) === undefined;
    chart.setData(stacked(), false);
    chart.redraw();
  };
  return register(chart, figure);
}

function byKey(event, chart) {
  const { min, max } = chart.scales.x;
  const idx = chart.cursor.idx ?? Math.round(times.length / 2);
  const middle = chart.cursor.left >= 0 ? times[idx] : (min + max) / 2;
  const half = (factor) => [Math.max(times[0], middle - ((max - min) / 2) * factor), Math.min(times[times.length - 1], middle + ((max - min) / 2) * factor)];
  const move = (by) => {
    const to = Math.min(times.length - 1, Math.max(0, (chart.cursor.left >= 0 ? idx : Math.round(times.length / 2)) + by));
    chart.setCursor({ left: chart.valToPos(times[to], "x"), top: chart.height / 3 }, true, true);
  };
  const act = {
    "+": () => zoom(half(0.5)), "=": () => zoom(half(0.5)), "-": () => zoom(half(2)), 0: () => zoom(null),
    ArrowLeft: () => move(-1), ArrowRight: () => move(1),
  }[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act();
}

function picker() {
  const place = document.getElementById("picker");
  report.sides.forEach((name, side) => {
    const runs = [...drawn].filter((run) => report.runs[run].side === side).sort((a, b) => a - b);
    if (!runs.length) return;
    const group = element("span", `of-side side-${side % 8}`);
    const all = checkbox(group, name, "");
    const each = runs.length > 1 ? runs.map((run) => [run, checkbox(group, String(report.runs[run].repeat), "repeat", report.runs[run].id)]) : [];
    const show = () => {
      const shown = runs.filter((run) => visible.has(run));
      all.checked = shown.length > 0;
      all.indeterminate = shown.length > 0 && shown.length < runs.length;
      for (const [run, box] of each) box.checked = visible.has(run);
    };
    const change = (which, on) => {
      for (const run of which) if (on) visible.add(run); else visible.delete(run);
      show();
      for (const chart of charts) chart.choose();
    };
    all.addEventListener("change", () => change(runs, all.checked));
    for (const [run, box] of each) box.addEventListener("change", () => change([run], box.checked));
    show();
    place.append(group);
  });
  const out = element("button", "", "Show everything");
  out.id = "zoom-out";
  out.type = "button";
  out.hidden = true;
  out.addEventListener("click", () => zoom(null));
  place.append(out);
}

function checkbox(group, name, className, title) {
  const label = element("label", className);
  const box = element("input");
  box.type = "checkbox";
  if (title) label.title = title;
  label.append(box, element("span", "", name));
  label.lastChild.style.color = "var(--ink)";
  group.append(label);
  return box;
}

if (report.grid) {
  for (const run of drawn) visible.add(run);
  picker();
  for (const figure of document.querySelectorAll('[data-kind="time"]')) {
    const [, key, side] = figure.dataset.key.match(/^(.*?)(?:@(\d+))?$/);
    const course = courses.get(figure.dataset.key) || courses.get(key);
    later(figure, course.parts.length ? () => stackChart(figure, course, Number(side)) : () => lineChart(figure, course));
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && zoomed) zoom(null); });
}
