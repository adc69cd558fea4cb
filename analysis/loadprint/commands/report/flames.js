// Flame graphs: one at a time, of a side alone or compared with the reference.
function flameTree(data, side) {
  const nodes = data.name.map((name, place) => ({
    name: data.names[name], value: data.times[side][place], place, children: [],
  }));
  data.parent.forEach((parent, place) => { if (parent >= 0 && nodes[place].value > 0) nodes[parent].children.push(nodes[place]); });
  return nodes[0];
}

// Red is more than the reference, blue less; full colour at four times as much or as little. Orange: not in the reference.
function ratioColour(ratio) {
  if (!ratio || !ratio[3]) return "#d4d4d0";
  if (ratio[0] === null) return "#f2b35e";
  const strength = Math.min(1, Math.abs(Math.log2(ratio[0])) / 2);
  const pale = Math.round(225 - 135 * strength);
  return ratio[0] > 1 ? `rgb(235,${pale},${pale})` : `rgb(${pale},${Math.min(235, pale + 25)},240)`;
}

function ratioText(ratio, base) {
  if (!ratio) return `, no ratio to ${base}`;
  if (ratio[0] === null) return `, not in ${base}${ratio[3] ? "" : ", which too few samples show"}`;
  const interval = ratio[1] === null ? "" : ` [${written(ratio[1])}, ${written(ratio[2])}]`;
  return `, ${written(ratio[0])} × ${base}${interval}${ratio[3] ? "" : ", not distinguishable"}`;
}

function flameText(data, view, node) {
  const { place, value } = node.data;
  const share = formats[1].format((100 * value) / data.times[view.side][0]);
  const text = `${node.data.name}: ${written(value)} µs per ${data.work}, ${share} %`;
  return view.compared ? text + ratioText(data.ratios[view.side][place], report.sides[data.base]) : text;
}

function flameSection(place, data) {
  const details = document.getElementById("flame-details");
  const search = document.getElementById("flame-search");
  const buttons = [...document.querySelectorAll(".flame-view")];
  let chart = null;
  const find = () => { if (search.value) chart.search(search.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")); else chart.clear(); };
  const show = (button) => {
    const view = { side: Number(button.dataset.side), compared: button.dataset.compared === "1" };
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    place.replaceChildren();
    chart = flamegraph().width(Math.max(320, place.clientWidth)).cellHeight(18).inverted(true).minFrameSize(1)
      .transitionDuration(0).sort(true).title("").tooltip(false)
      .label((node) => flameText(data, view, node))
      .setDetailsHandler((text) => { details.textContent = text || "\u00a0"; })
      .setSearchHandler((found, sum, all) => { details.textContent = `${found.length} functions, ${formats[1].format((100 * sum) / all)} % of the time`; })
      .setColorMapper((node) => {
        if (node.highlight || node.data.highlight) return "#c9a2e8";
        if (view.compared) return ratioColour(data.ratios[view.side][node.data.place]);
        return data.kernel[node.data.place] ? "#e3bd86" : "#a9c3df";
      });
    d3.select(place).datum(flameTree(data, view.side)).call(chart);
    // The library lets the boxes grow for 250 ms. Printing resizes the page, and would show them unfinished.
    for (const node of place.querySelectorAll("g")) node.querySelector("rect").setAttribute("width", node.getAttribute("width"));
    if (search.value) find();
  };
  for (const button of buttons) button.addEventListener("click", () => show(button));
  search.addEventListener("input", find);
  let shown = 0;
  new ResizeObserver(() => {
    if (Math.abs(place.clientWidth - shown) < 2) return;
    shown = place.clientWidth;
    show(buttons.find((button) => button.getAttribute("aria-pressed") === "true"));
  }).observe(place);
}

if (report.flames) {
  const place = document.getElementById("flame");
  const start = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    start.disconnect();
    flameSection(place, report.flames);
  }, { rootMargin: "800px 0px" });
  start.observe(place);
}
