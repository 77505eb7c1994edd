// Draws the charts and lets a reader choose their lines; it follows page.js in one script.

const COLOURS = 10;
const DASHES = ["", "7 3", "2 2.5", "9 3 2 3", "4 2", "12 3"];

/** Round numbers from low to high, some `count` of them. */
const ticks = (low, high, count) => {
  const unit = 10 ** Math.floor(Math.log10((high - low) / count));
  const step = unit * [1, 2, 5, 10].find((k) => k * unit * count >= (high - low) * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const length = Math.max(0, Math.floor(high / step + 1e-9) - first + 1);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Array.from({ length }, (_, i) => (first + i) * step).map((value) =>
    [value, written(value + 0, { maximumFractionDigits: Math.min(digits, 20) })]);
};

/** The lines, each once: a colour for all groups but the last, a dash for the last. */
const styled = (series) => {
  const lines = new Map();
  const kinds = new Map();
  for (const { label, groups, shown } of series) {
    if (lines.has(label)) continue;
    const kind = groups.length ? JSON.stringify(groups.slice(0, -1)) : JSON.stringify(label);
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push(label);
    lines.set(label, { label, groups: new Map(groups), first: shown, kind });
  }
  const order = [...kinds.keys()];
  const spread = kinds.size < 2 || kinds.size > COLOURS;
  [...lines.values()].forEach((line, i) => {
    const [colour, dash] = spread
      ? [i % COLOURS, Math.floor(i / COLOURS)]
      : [order.indexOf(line.kind), kinds.get(line.kind).indexOf(line.label)];
    Object.assign(line, { colour: `k${colour}`, dash: DASHES[dash % DASHES.length] });
  });
  return lines;
};

const range = (values, share = 0.04) => {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value === null) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  const pad = high > low ? (high - low) * share : Math.abs(high) * 0.1 || 1;
  return [low - pad, high + pad];
};

/** The range of x, from zero and to a round number where these are near. */
const wide = (values) => {
  const [low, high] = range(values, 0);
  const half = 10 ** Math.floor(Math.log10(Math.abs(high) || 1)) / 2;
  const round = Math.ceil(high / half) * half;
  return [low > 0 && low < 0.1 * high ? 0 : low, round - high < 0.03 * (high - low) ? round : high];
};

/** Contiguous runs of points with a value, as lists of [x, y] on the screen. */
const runs = (xs, ys, X, Y) => {
  const found = [[]];
  ys.forEach((y, i) => {
    if (y !== null) found.at(-1).push(`${X(xs[i]).toFixed(1)},${Y(y).toFixed(1)}`);
    else if (found.at(-1).length) found.push([]);
  });
  return found.filter((run) => run.length);
};

const path = (s, X, Y) =>
  runs(s.x, s.y, X, Y).map((run) => `M${run.join("L")}${run.length > 1 ? "" : "h.1"}`).join("");
const band = (s, X, Y) => {
  const whole = s.low.map((low, i) => (low === null || s.high[i] === null ? null : i));
  const [tops, bottoms] = [s.high, s.low].map((side) =>
    runs(s.x, whole.map((i) => (i === null ? null : side[i])), X, Y));
  return tops.map((top, i) => `M${top.join("L")}L${bottoms[i].reverse().join("L")}Z`).join("");
};

/** One panel: its plot, and the line under the pointer or the keys, with its value. */
const panel = (name, series, chart) => {
  const svg = draw("svg", { "aria-hidden": "true" });
  const [who, value] = ["who", "value"].map((kind) => make("p", { class: kind }));
  const plot = make("div", { class: "plot", tabindex: "0", role: "application" }, svg);
  const dot = draw("circle", { r: "4.5" });
  let [visible, X, Y, at] = [[], null, null, null];
  const end = Math.max(...series.flatMap((s) => s.x));

  const mark = (label) => {
    svg.classList.toggle("some", visible.some((s) => s.label === label));
    for (const item of svg.querySelectorAll(".curve, .band")) {
      item.classList.toggle("hot", item.label === label);
    }
  };
  const show = (point) => {
    at = point;
    mark(at?.s.label);
    dot.remove();
    who.textContent = at ? at.s.label : "";
    value.textContent = chart.y;
    if (!at) return;
    const { s, i } = at;
    const { colour } = chart.lines.get(s.label);
    fill(dot, { class: `dot ${colour}`, cx: X(s.x[i]), cy: Y(s.y[i]) }, []);
    svg.lastChild.append(dot);
    const interval = s.low[i] === null || s.high[i] === null || !chart.options.intervals ? ""
      : ` [${short(s.low[i])}, ${short(s.high[i])}]`;
    value.textContent = `${short(s.y[i])}${interval} at ${short(s.x[i])} ${chart.x}`;
  };
  /** The points of all lines that are nearest to an x, from the highest to the lowest. */
  const column = (x) => visible.map((s) => {
    let best = -1;
    s.x.forEach((at, i) => {
      if (s.y[i] !== null && (best < 0 || Math.abs(at - x) < Math.abs(s.x[best] - x))) best = i;
    });
    return { s, i: best };
  }).filter(({ i }) => i >= 0).sort((a, b) => b.s.y[b.i] - a.s.y[a.i]);
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width || 1;
    const [x, y] = [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
    const far = ({ s, i }) => Math.hypot(X(s.x[i]) - x, Y(s.y[i]) - y);
    show(column(X.invert(x)).sort((a, b) => far(a) - far(b))[0] ?? null);
  };
  const key = (event) => {
    const points = column(at ? at.s.x[at.i] : end);
    const rank = points.findIndex(({ s }) => s === at?.s);
    const present = at?.s.y.map((y, i) => (y === null ? -1 : i)).filter((i) => i >= 0);
    const along = (k) => ({ s: at.s, i: present[Math.max(0, Math.min(k, present.length - 1))] });
    const go = {
      ArrowUp: () => points[Math.max(rank - 1, 0)],
      ArrowDown: () => points[Math.min(rank + 1, points.length - 1)],
      ArrowLeft: () => along(present.indexOf(at.i) - 1),
      ArrowRight: () => along(present.indexOf(at.i) + 1),
      Home: () => along(0),
      End: () => along(Infinity),
      Escape: () => null,
    }[event.key];
    if (!go || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    show(rank < 0 && event.key !== "Escape" ? points[0] ?? null : go());
    say(at ? `${at.s.label}: ${value.textContent}` : "");
  };
  fill(plot, {
    onpointermove: nearest,
    onpointerdown: nearest,
    onpointerleave: (event) => event.pointerType === "mouse" && show(null),
    onkeydown: key,
    onfocus: () => plot.matches(":focus-visible") && show(column(end)[0] ?? null),
    onblur: () => show(null),
  }, []);

  const redraw = (xRange, yRange) => {
    visible = series.filter((s) => chart.lines.get(s.label).box.checked);
    box.hidden = !visible.length && [...chart.lines.values()].some((line) => line.box.checked);
    const width = plot.clientWidth;
    if (!width) return;
    const height = Math.round(Math.max(220, Math.min(320, width * 0.68)));
    const yTicks = ticks(...yRange, 7);
    const left = 12 + 7 * Math.max(...yTicks.map(([, text]) => text.length));
    const [right, top, bottom] = [width - 26, 10, height - 38];
    X = (x) => left + ((x - xRange[0]) / (xRange[1] - xRange[0])) * (right - left);
    Y = (y) => bottom - ((y - yRange[0]) / (yRange[1] - yRange[0])) * (bottom - top);
    X.invert = (px) => xRange[0] + ((px - left) / (right - left)) * (xRange[1] - xRange[0]);
    const text = (x, y, anchor, words) => draw("text", { x, y, "text-anchor": anchor }, words);
    const rule = (kind, x1, y1, x2, y2) => draw("line", { class: kind, x1, y1, x2, y2 });
    const shape = (kind, s, d) => {
      const { colour, dash } = chart.lines.get(s.label);
      const dashes = kind === "curve" ? { "stroke-dasharray": dash || "none" } : {};
      return Object.assign(draw("path", { class: `${kind} ${colour}`, d, ...dashes }),
        { label: s.label });
    };
    const banded = chart.options.intervals ? visible : [];
    const bands = banded.map((s) => shape("band", s, band(s, X, Y)));
    const [x, y, w, h] = [left, top - 4, right - left + 6, bottom - top + 4];
    const inside = draw("svg", { x, y, width: w, height: h, viewBox: `${x} ${y} ${w} ${h}` },
      ...bands, ...visible.map((s) => shape("curve", s, path(s, X, Y))));
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.classList.toggle("many", visible.length > 6);
    svg.replaceChildren(
      ...yTicks.flatMap(([y, words]) => [rule("grid", left, Y(y), right, Y(y)),
        text(left - 7, Y(y) + 4, "end", words)]),
      rule("axis", left, bottom, right, bottom),
      ...ticks(...xRange, Math.max(2, Math.floor((right - left) / 65))).flatMap(([x, words]) => [
        rule("axis", X(x), bottom, X(x), bottom + 4), text(X(x), bottom + 18, "middle", words)]),
      text((left + right) / 2, height - 4, "middle", chart.x),
      ...(visible.length ? [] : [text((left + right) / 2, (top + bottom) / 2, "middle",
        "no lines chosen")]),
      inside);
    plot.setAttribute("aria-label", `${name}: ${visible.length} lines of ${chart.y} against `
      + `${chart.x}. Left and right go along a line, up and down to another.`);
    show(at && visible.includes(at.s) ? at : null);
  };
  const box = make("div", { class: "panel" },
    make("div", { class: "head" }, make("h4", {}, name), who), value, plot);
  return { box, mark, redraw, series };
};

/** A chart with its panels, and the controls that say which lines they show. */
const interactive = (place) => {
  const data = JSON.parse(place.querySelector("script").textContent);
  const lines = styled(data.series);
  const options = { intervals: true, same: data.same_scale, end: true };
  const chart = { lines, options, x: data.x, y: data.y };
  const panels = [...new Set(data.series.map((s) => s.panel))].map((name) =>
    panel(name, data.series.filter((s) => s.panel === name), chart));

  const scales = (series) => {
    const xRange = wide(series.flatMap((s) => s.x));
    const middle = (xRange[0] + xRange[1]) / 2;
    const shown = series.filter((s) => lines.get(s.label).box.checked);
    const values = shown.flatMap((s) => {
      const from = options.end ? s.x.findIndex((x) => x >= middle) : 0;
      const columns = options.intervals ? [s.y, s.low, s.high] : [s.y];
      return columns.flatMap((column) => column.slice(Math.max(from, 0)));
    });
    return [xRange, range(values)];
  };
  const redraw = () => {
    const all = scales(data.series);
    for (const one of panels) one.redraw(...(options.same ? all : scales(one.series)));
  };
  let waiting = false;
  const later = () => {
    if (!waiting) requestAnimationFrame(() => { waiting = false; redraw(); });
    waiting = true;
  };

  const count = make("output");
  const pressed = new Map();
  const update = () => {
    const on = [...lines.values()].filter(({ box }) => box.checked).length;
    count.textContent = `${on} of ${lines.size} lines shown`;
    for (const [button, [group, word]] of pressed) {
      button.setAttribute("aria-pressed", chosen.get(group)?.has(word) ?? false);
    }
    later();
  };
  const chosen = new Map();
  const choose = (test) => {
    for (const line of lines.values()) line.box.checked = test(line);
    update();
  };
  const press = (group, word) => {
    const words = chosen.get(group) ?? new Set();
    if (!words.delete(word)) words.add(word);
    if (words.size) chosen.set(group, words);
    else chosen.delete(group);
    if (!chosen.size) return reset((line) => line.first);
    return choose((line) => [...chosen].every(([g, wanted]) => wanted.has(line.groups.get(g))));
  };
  const reset = (test) => {
    chosen.clear();
    choose(test);
  };
  const button = (words, onclick) => make("button", { type: "button", onclick }, words);

  const list = make("div", { class: "lines" });
  for (const line of lines.values()) {
    const mark = (label) => () => panels.forEach((one) => one.mark(label));
    line.box = make("input", { type: "checkbox", autocomplete: "off",
      onchange: () => { chosen.clear(); update(); }, onfocus: mark(line.label), onblur: mark() });
    line.box.checked = line.first;
    const swatch = draw("svg", { class: "key", viewBox: "0 0 32 12", "aria-hidden": "true" },
      draw("path", { class: "curve", d: "M0,6H32", "stroke-dasharray": line.dash || "none" }));
    list.append(make("label", { class: line.colour, onpointerenter: mark(line.label),
      onpointerleave: mark() }, line.box, swatch, line.label));
  }
  if (![...lines.values()].some((line) => line.first)) {
    for (const line of lines.values()) line.box.checked = line.first = true;
  }
  const names = [...new Set([...lines.values()].flatMap((line) => [...line.groups.keys()]))];
  const facets = names.map((group) => {
    const words = new Set([...lines.values()].map((line) => line.groups.get(group)));
    words.delete(undefined);
    const buttons = [...words].map((word) => {
      const one = button(word, () => press(group, word));
      pressed.set(one, [group, word]);
      return one;
    });
    return make("div", { role: "group", "aria-label": group }, make("span", {}, group), ...buttons);
  });
  const option = (key, words) => {
    const box = make("input", { type: "checkbox", autocomplete: "off",
      onchange: () => { options[key] = box.checked; later(); } });
    box.checked = options[key];
    return make("label", {}, box, words);
  };
  place.append(
    make("fieldset", {}, make("legend", {}, "Lines"),
      make("div", { class: "row" },
        make("div", {}, button("All", () => reset(() => true)),
          button("None", () => reset(() => false)),
          button("First choice", () => reset((line) => line.first))), count),
      make("div", { class: "row" }, ...facets), list,
      make("div", { class: "row" }, option("intervals", "Intervals"),
        ...(panels.length > 1 ? [option("same", "Same scale in all panels")] : []),
        option("end", "Fit the scale to the second half"))),
    make("div", { class: "panels" }, ...panels.map(({ box }) => box)));
  update();
  new ResizeObserver(later).observe(place);
};

for (const place of document.querySelectorAll(".chart")) interactive(place);
