// Percentile curves and histograms: a logarithmic axis each, values of all sides where the cursor is.
const QUANTILES = [[0, "0"], [Math.log10(2), "50 %"], [1, "90 %"], [2, "99 %"], [3, "99.9 %"], [4, "99.99 %"], [5, "99.999 %"], [6, "99.9999 %"]];

function shared(figure, more) {
  const place = figure.querySelector(".canvas");
  return {
    width: place.clientWidth, height: place.clientHeight, legend: { show: false }, padding: [8, 28, 0, 0],
    cursor: { y: false, points: { size: 5 }, drag: { x: true, y: false } },
    ...more,
  };
}

// Lines with different abscissae on one common axis: null where a line has no point.
function joined(lines) {
  const every = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const places = new Map(every.map((x, place) => [x, place]));
  return [every, ...lines.map((line) => {
    const values = every.map(() => null);
    line.x.forEach((x, place) => { values[places.get(x)] = line.y[place]; });
    return values;
  })];
}

// Places of a logarithmic axis: powers of ten, and 2 and 5 between them where there is room.
function decades(low, high) {
  const found = [];
  const between = high / low < 5 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : high / low < 500 ? [1, 2, 5] : [1];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const one of between) found.push(one * 10 ** power);
  }
  return found.filter((one) => one >= low && one <= high);
}

// As many steps of four as there are: sizes are powers of two.
function fourfold(low, high) {
  const found = [];
  for (let power = Math.ceil(Math.log2(low) / 2); 4 ** power <= high; power += 1) found.push(4 ** power);
  return found;
}

const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const TIMES = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]];

// A value of a histogram with its unit: a time in the unit that it is short in, 2 ms and not 2,000 µs.
function sized(value, unit) {
  const known = TIMES.find(([name]) => name === unit);
  if (!known || value === 0) return `${plain.format(value)} ${unit}`;
  const seconds = value * known[1];
  const [name, step] = TIMES.find(([, size]) => seconds >= size * 0.9995) || TIMES[TIMES.length - 1];
  return `${plain.format(seconds / step)} ${name}`;
}

function percentileChart(figure, data) {
  const readout = new Readout(figure);
  const joinedData = joined(data.curves);
  const percent = (x) => `${Number((100 * (1 - 10 ** -x)).toFixed(x < 2 ? 1 : Math.ceil(x)))} %`;
  return new uPlot(shared(figure, {
    scales: { x: { time: false }, y: { distr: 3 } },
    axes: [
      axis({ splits: (_, index, low, high) => QUANTILES.map(([at]) => at).filter((at) => at >= low && at <= high), values: (_, splits) => splits.map((at) => QUANTILES.find(([one]) => one === at)?.[1] ?? ""), space: 1 }),
      axis({ size: beside, splits: (_, index, low, high) => decades(low, high), values: (_, splits) => splits.map((one) => plain.format(one)), filter: (_, splits) => splits }),
    ],
    series: [{}, ...data.curves.map((curve) => ({ stroke: () => runColour(curve.run), width: 1.5, spanGaps: true, points: { show: curve.x.length < 8, size: 5 } }))],
    hooks: {
      setCursor: [(chart) => {
        const { idx } = chart.cursor;
        if (idx === null || idx === undefined) { readout.clear(); return; }
        const parts = report.sides.map((_, side) => {
          const texts = data.curves.flatMap((curve, place) => (report.runs[curve.run].side === side ? [written(joinedData[place + 1][idx])] : []));
          return [`side-${side % 8}`, texts.join("  ")];
        });
        readout.show(`below ${percent(joinedData[0][idx])}`, parts.filter(([, text]) => text));
      }],
    },
  }), joinedData, figure.querySelector(".canvas"));
}

function distributionChart(figure, data) {
  const readout = new Readout(figure);
  const last = data.edges.length - 1;
  const sides = data.heights.map((_, side) => side).filter((side) => data.heights[side]);
  const heights = sides.map((side) => [...data.heights[side], data.heights[side][last - 1]]);
  return new uPlot(shared(figure, {
    scales: { x: { time: false, distr: 3, range: () => [data.edges[0], data.edges[last]] }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, dataIdx: (chart, series, idx, x) => Math.max(0, data.edges.findLastIndex((edge) => edge <= x)) },
    axes: [
      axis({ splits: () => (data.shown === "kB" ? fourfold : decades)(data.edges[0], data.edges[last]), values: (_, splits) => splits.map((one) => sized(one, data.shown)), filter: (_, splits) => splits, space: 30 }),
      axis({ size: 18, values: (_, splits) => splits.map(() => ""), ticks: { show: false }, space: 40 }),
    ],
    series: [{}, ...sides.map((side) => ({
      stroke: () => sideColour(side), fill: () => translucent(sideColour(side), 0.13), width: 1.4,
      paths: uPlot.paths.stepped({ align: 1 }), points: { show: false },
    }))],
    hooks: {
      setCursor: [(chart) => {
        if (chart.cursor.left < 0) { readout.clear(); return; }
        const x = chart.posToVal(chart.cursor.left, "x");
        const cell = Math.min(last - 1, Math.max(0, data.edges.findLastIndex((edge) => edge <= x)));
        readout.show(`${sized(data.edges[cell], data.shown)} – ${sized(data.edges[cell + 1], data.shown)}`,
          sides.map((side) => [`side-${side % 8}`, `${written(100 * data.shares[side][cell])} %`]));
      }],
    },
  }), [data.edges, ...heights], figure.querySelector(".canvas"));
}

const byKind = {
  percentiles: [report.percentiles, percentileChart],
  distribution: [report.distributions, distributionChart],
};
for (const [kind, [data, make]] of Object.entries(byKind)) {
  const known = new Map(data.map((one) => [one.key, one]));
  for (const figure of document.querySelectorAll(`[data-kind="${kind}"]`)) {
    later(figure, () => make(figure, known.get(figure.dataset.key)));
  }
}
