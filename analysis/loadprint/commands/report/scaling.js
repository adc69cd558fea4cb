// Throughput over threads: measured points, fitted curves, the interval of the first of them.
function scalingChart(figure, data) {
  const readout = new Readout(figure);
  const lines = data.curves.map((curve) => ({ x: curve.n, y: curve.x }));
  const [chief] = data.curves;
  if (chief?.low) lines.push({ x: chief.n, y: chief.low }, { x: chief.n, y: chief.high });
  // repeats at one number of threads are separate lines: an abscissa has one value
  const repeats = [];
  data.n.forEach((n, place) => {
    const free = repeats.find((one) => !one.x.includes(n));
    if (free) { free.x.push(n); free.y.push(data.x[place]); } else repeats.push({ x: [n], y: [data.x[place]] });
  });
  const values = joined([...lines, ...repeats]);
  const styles = data.curves.map((curve, place) => ({
    stroke: () => (curve.chief ? sideColour(data.side) : colour("quiet")), width: curve.chief ? 1.6 : 1,
    dash: curve.chief ? undefined : [[5, 4], [2, 3]][(place - 1) % 2], spanGaps: true, points: { show: false },
  }));
  const band = chief?.low ? [{}, {}].map(() => ({ stroke: "transparent", width: 0, spanGaps: true, points: { show: false } })) : [];
  const points = repeats.map(() => ({
    paths: () => null, points: { show: true, size: 7, stroke: () => colour("paper"), fill: () => sideColour(data.side), width: 1 },
  }));
  const low = lines.length - 1;
  return new uPlot(shared(figure, {
    scales: { x: { time: false, distr: 3, log: 2 }, y: { range: (_, least, most) => [0, Math.min(most, 1.6 * Math.max(...data.x)) * 1.08] } },
    axes: [
      axis({ space: 40, values: (_, splits) => splits.map((one) => (one === null ? "" : one.toLocaleString("en"))) }),
      axis({ size: beside, space: 28, values: (_, splits) => ticks(splits) }),
    ],
    series: [{}, ...styles, ...band, ...points],
    bands: chief?.low ? [{ series: [low + 1, low], fill: () => translucent(sideColour(data.side), 0.14) }] : [],
    hooks: {
      setCursor: [(chart) => {
        const { idx } = chart.cursor;
        if (idx === null || idx === undefined) { readout.clear(); return; }
        const parts = data.curves.flatMap((curve, place) => {
          const value = values[place + 1][idx];
          return value === null ? [] : [["", `${curve.label.split(" (")[0]} ${written(value)}`]];
        });
        const measured = repeats.flatMap((_, place) => values[1 + lines.length + place][idx] ?? []);
        if (measured.length) parts.unshift([`side-${data.side % 8}`, measured.map(written).join("  ")]);
        readout.show(`${written(values[0][idx])} threads`, parts);
      }],
    },
  }), values, figure.querySelector(".canvas"));
}

const scalings = new Map(report.scaled.map((one) => [one.key, one]));
for (const figure of document.querySelectorAll('[data-kind="scaling"]')) {
  later(figure, () => scalingChart(figure, scalings.get(figure.dataset.key)));
}
