// Charts by uPlot. Its legend shows the values at the cursor; a click on a name hides that line in all charts over time.
const report = JSON.parse(document.getElementById("report-data").textContent);
const css = getComputedStyle(document.documentElement);
const colour = (name, alpha = "") => css.getPropertyValue(`--${name}`).trim() + alpha;
const FADED = ["", "b8", "80"]; // alpha of the repeats of a side
const FONT = `11px ${getComputedStyle(document.body).fontFamily}`;
const numbers = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, maximumFractionDigits: 0, roundingPriority: "morePrecision" });
const written = (value) => (value === null || value === undefined ? "–" : numbers.format(value));

// Values from base64 of float32; null where there is none.
function decoded(text) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  return Array.from(new Float32Array(bytes.buffer), (value) => (Number.isNaN(value) ? null : value));
}

const times = decoded(report.times);

function axis(size, more) {
  return {
    stroke: colour("quiet"), font: FONT, gap: 4, size,
    grid: { stroke: colour("faint"), width: 1 }, ticks: { stroke: colour("rule"), width: 1, size: 4 },
    values: (_, splits) => splits.map((value) => (value === null ? "" : written(value))), ...more,
  };
}

// Labels of a logarithmic axis: powers of ten, and 2 and 5 between them where there is space.
function decades(_, splits) {
  const shown = splits[splits.length - 1] / splits[0] < 500 ? [1, 2, 5] : [1];
  const first = (value) => Number((value / 10 ** Math.floor(Math.log10(value) + 1e-9)).toFixed(6));
  return splits.map((value) => (shown.includes(first(value)) ? value : null));
}

const percent = (nines) => `${Number((100 * (1 - 10 ** -nines)).toFixed(4))} %`;
const NINES = [0, Math.log10(2), 1, 2, 3, 4, 5, 6];
const fromZero = { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] };

// By kind of chart: scales, axes, and the text of the abscissa in the legend.
const overTime = {
  scales: { x: { time: false }, y: fromZero },
  axes: [axis(26, { space: 64, values: (_, splits) => splits.map((value) => `${written(value)} s`) }), axis(64)],
  at: (x, idx) => `${written(x[idx])} s`,
};
const KINDS = {
  time: overTime,
  windows: overTime,
  percentiles: {
    scales: { x: { time: false }, y: { distr: 3 } },
    axes: [axis(26, { splits: (_, __, low, high) => NINES.filter((one) => one >= low && one <= high), values: (_, splits) => splits.map(percent), space: 1 }), axis(64, { filter: decades })],
    at: (x, idx) => `below ${percent(x[idx])}`,
  },
  histogram: {
    scales: { x: { time: false, distr: 3, range: (_, low, high) => [low, high] }, y: fromZero },
    axes: [axis(26, { filter: decades }), axis(18, { values: (_, splits) => splits.map(() => "") })],
    at: (x, idx) => `${written(x[idx])} – ${written(x[idx + 1])}`,
  },
  scaling: {
    scales: { x: { time: false, distr: 3, log: 2 }, y: fromZero },
    axes: [axis(26, { space: 40 }), axis(64)],
    at: (x, idx) => `${written(x[idx])} threads`,
  },
};

const STYLES = {
  line: { width: 1.3, spanGaps: false, points: { show: false } },
  sparse: { width: 1.3, spanGaps: true, points: { show: true, size: 4 } },
  part: { width: 0.5, points: { show: false }, filled: "" },
  steps: { width: 1.4, points: { show: false }, filled: "22", paths: uPlot.paths.stepped({ align: 1 }) },
  curve: { width: 1.6, spanGaps: true, points: { show: false } },
  dashed: { width: 1, spanGaps: true, points: { show: false }, dash: [5, 4] },
  bound: { width: 0, spanGaps: true, points: { show: false } },
  measured: { paths: () => null, points: { show: true, size: 7 } },
};

// Sums of the parts, the uppermost first: each covers those below it.
function stacked(parts) {
  let sum = times.map(() => 0);
  return parts.map((part) => (sum = sum.map((below, place) => (part[place] === null ? null : below + part[place])))).reverse();
}

// Shades what is not measured, names the phases above the plot, and marks the spikes of the chart's runs.
function marks(chart, runs) {
  const { ctx, bbox } = chart;
  const right = bbox.left + bbox.width;
  const at = (seconds) => Math.min(right, Math.max(bbox.left, chart.valToPos(seconds, "x", true)));
  ctx.save();
  ctx.font = `${10 * devicePixelRatio}px ${FONT.slice(5)}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  for (const [name, begin, end] of (runs.find((run) => run.phases.length) || runs[0]).phases) {
    if (name === "measure") {
      ctx.fillStyle = colour("outside");
      ctx.fillRect(bbox.left, bbox.top, at(begin) - bbox.left, bbox.height);
      ctx.fillRect(at(end), bbox.top, right - at(end), bbox.height);
    } else if (at(end) - at(begin) > ctx.measureText(name).width) {
      ctx.fillStyle = colour("quiet");
      ctx.fillText(name, at(begin), bbox.top);
    }
  }
  for (const run of runs) {
    for (const [begin, end] of run.spikes) {
      const width = Math.max(2, at(end) - at(begin));
      ctx.fillStyle = colour(`side-${run.side % 8}`, "24");
      ctx.fillRect(at(begin), bbox.top, width, bbox.height);
      ctx.fillStyle = colour(`side-${run.side % 8}`);
      ctx.fillRect(at(begin), bbox.top, width, 3 * devicePixelRatio);
    }
  }
  ctx.restore();
}

function series(line, legend) {
  const { filled, ...style } = STYLES[line.style];
  const stroke = colour(line.colour, FADED[line.faded]);
  const fill = filled === undefined ? undefined : colour(line.colour, filled);
  return { label: line.label, stroke, fill, value: legend, ...style };
}

function draw(figure, chart) {
  const place = figure.querySelector(".canvas");
  const kind = KINDS[chart.kind];
  const ys = chart.series.map((line) => decoded(line.y));
  let lines = chart.series;
  let data = [chart.kind === "time" ? times : decoded(chart.series[0].x), ...ys];
  let legends = ys.map(() => (_, value) => written(value));
  if (chart.kind === "histogram") {
    const width = (idx) => Math.log10(data[0][idx + 1] / data[0][idx]);
    legends = ys.map((y) => (_, value, __, idx) => (idx === null ? "–" : `${written(100 * y[idx] * width(idx))} %`));
  } else if (chart.kind !== "time") {
    data = uPlot.join(chart.series.map((line, nth) => [decoded(line.x), ys[nth]]));
  } else if (chart.stacked) {
    lines = [...chart.series].reverse();
    data = [times, ...stacked(ys)];
    legends = ys.map((y) => (_, __, ___, idx) => written(idx === null ? null : y[idx])).reverse();
  }
  const low = lines.findIndex((line) => line.style === "bound") + 1;
  const runs = (chart.runs || []).map((run) => report.runs[run]);
  const drawn = new uPlot({
    width: place.clientWidth, height: place.clientHeight, padding: [16, 24, 0, 0],
    scales: chart.ceiling ? { ...kind.scales, y: { range: (_, __, high) => [0, Math.max(chart.ceiling, high || 0)] } } : kind.scales,
    axes: kind.axes,
    series: [{ label: "at", value: (_, __, ___, idx) => (idx === null ? "–" : kind.at(data[0], idx)) }, ...lines.map((line, nth) => series(line, legends[nth]))],
    bands: low ? [{ series: [low + 1, low], fill: colour(lines[0].colour, "24") }] : [],
    cursor: {
      y: false, points: { size: 5 }, drag: { x: true, y: false },
      dataIdx: (_, __, idx, x) => (chart.kind === "histogram" ? Math.max(0, data[0].findLastIndex((edge) => edge <= x)) : idx),
      ...(chart.kind === "time" && {
        sync: { key: "time", setSeries: true, match: [(a, b) => a === b, (a, b) => a === b, (own, other, nth) => own.series.findIndex((one) => one.label === other.series[nth].label)] },
      }),
    },
    hooks: { drawClear: runs.length ? [(own) => marks(own, runs)] : [] },
  }, data, place);
  new ResizeObserver(() => {
    if (place.clientWidth && Math.abs(place.clientWidth - drawn.width) > 1) drawn.setSize({ width: place.clientWidth, height: drawn.height });
  }).observe(place);
}

const known = new Map(report.charts.map((chart) => [chart.key, chart]));
for (const figure of document.querySelectorAll("figure.chart")) draw(figure, known.get(figure.dataset.key));
