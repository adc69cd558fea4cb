// Flame graphs: one at a time, of a side alone or compared with the reference.
const flames = report.flames;
const share = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

function flameTree(side) {
  const nodes = flames.name.map((name, place) => ({ name: flames.names[name], value: flames.times[side][place], place, children: [] }));
  flames.parent.forEach((parent, place) => { if (parent >= 0 && nodes[place].value > 0) nodes[parent].children.push(nodes[place]); });
  return nodes[0];
}

// Red is more than the reference, blue less; full colour at four times as much or as little. Orange: not in the reference.
function ratioColour(ratio) {
  if (!ratio || !ratio[3]) return "#d4d4d0";
  if (ratio[0] === null) return "#f2b35e";
  const pale = Math.round(225 - 135 * Math.min(1, Math.abs(Math.log2(ratio[0])) / 2));
  return ratio[0] > 1 ? `rgb(235,${pale},${pale})` : `rgb(${pale},${Math.min(235, pale + 25)},240)`;
}

function ratioText(ratio) {
  if (!ratio) return `, no ratio to ${flames.base}`;
  if (ratio[0] === null) return `, not in ${flames.base}${ratio[3] ? "" : ", which too few samples show"}`;
  const interval = ratio[1] === null ? "" : ` [${written(ratio[1])}, ${written(ratio[2])}]`;
  return `, ${written(ratio[0])} × ${flames.base}${interval}${ratio[3] ? "" : ", not distinguishable"}`;
}

const graph = document.getElementById("flame");
const details = document.getElementById("flame-details");
const search = document.getElementById("flame-search");
const views = [...document.querySelectorAll(".flame-view")];
let flameChart = null;

function find() {
  if (search.value) flameChart.search(search.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  else flameChart.clear();
}

function showFlames(view) {
  const { side, compared } = view.dataset;
  const ratios = compared === "1" ? flames.ratios[side] : null;
  for (const each of views) each.setAttribute("aria-pressed", String(each === view));
  graph.replaceChildren();
  flameChart = flamegraph().width(Math.max(320, graph.clientWidth)).cellHeight(18).inverted(true).minFrameSize(1)
    .transitionDuration(0).sort(true).title("").tooltip(false)
    .label(({ data }) => {
      const text = `${data.name}: ${written(data.value)} µs per ${flames.work}, ${share.format((100 * data.value) / flames.times[side][0])} %`;
      return ratios ? text + ratioText(ratios[data.place]) : text;
    })
    .setDetailsHandler((text) => { details.textContent = text || "\u00a0"; })
    .setSearchHandler((found, sum, all) => { details.textContent = `${found.length} functions, ${share.format((100 * sum) / all)} % of the time`; })
    .setColorMapper(({ highlight, data }) => {
      if (highlight || data.highlight) return "#c9a2e8";
      if (ratios) return ratioColour(ratios[data.place]);
      return flames.kernel[data.place] ? "#e3bd86" : "#a9c3df";
    });
  d3.select(graph).datum(flameTree(side)).call(flameChart);
  // The library lets the boxes grow for 250 ms. Printing resizes the page, and would show them unfinished.
  for (const node of graph.querySelectorAll("g")) node.querySelector("rect").setAttribute("width", node.getAttribute("width"));
  if (search.value) find();
}

for (const view of views) view.addEventListener("click", () => showFlames(view));
search.addEventListener("input", find);
let flameWidth = 0;
new ResizeObserver(() => {
  if (Math.abs(graph.clientWidth - flameWidth) < 2) return;
  flameWidth = graph.clientWidth;
  showFlames(views.find((view) => view.getAttribute("aria-pressed") === "true"));
}).observe(graph);
