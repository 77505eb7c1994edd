// The explorer: moves through solutions that were computed beforehand; it follows page.js.

const STEPS = 40;
const MANY = 12; // actions above which the bars are sorted by probability
const TYPES = { uint8: Uint8Array, uint16: Uint16Array, int32: Int32Array, float32: Float32Array };
const RAMPS = {
  light: [[248, 250, 252], [198, 219, 239], [107, 174, 214]],
  dark: [[17, 26, 36], [20, 62, 92], [40, 118, 168]],
};

/** The arrays of the page: base64, zlib, planes of bytes. */
const unpack = async ({ arrays, data }) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const plain = new Uint8Array(await new Response(stream).arrayBuffer());
  const found = {};
  let at = 0;
  for (const [name, type, length] of arrays) {
    const size = TYPES[type].BYTES_PER_ELEMENT;
    const whole = new Uint8Array(length * size);
    for (let byte = 0; byte < size; byte++) {
      for (let i = 0; i < length; i++) whole[i * size + byte] = plain[at++];
    }
    found[name] = new TYPES[type](whole.buffer);
  }
  return found;
};

/** Running totals of counts, from 0. */
const offsets = (counts) => {
  const total = new Int32Array(counts.length + 1);
  counts.forEach((count, i) => { total[i + 1] = total[i] + count; });
  return total;
};

/** Undoes differences along rows of a given length. */
const summed = (rows, length) => {
  for (let i = 0; i < rows.length; i++) if (i % length) rows[i] += rows[i - 1];
  return rows;
};

/** n 10^-d, written exactly. */
const fixed = (n, d) => {
  if (d < 0) return fixed(n * 10 ** -d, 0);
  const digits = String(Math.abs(n)).padStart(d + 1, "0");
  const [whole, rest] = [digits.slice(0, digits.length - d), digits.slice(digits.length - d)];
  return `${n < 0 ? "−" : ""}${whole}${d ? `.${rest}` : ""}`;
};

/** A code of the policy in words: an exact zero, a small probability, or per cent. */
const percent = (code) => {
  if (code === 0) return "0";
  return code === 1 ? "< 0.05 %" : `${fixed(code - 1, 1)} %`;
};

/** Random numbers from 0 to 1, the same for the same seed (mulberry32). */
const generator = (seed) => {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
};

const data = JSON.parse(document.getElementById("solutions").textContent);
const packed = await unpack(data);
const S = data.states;
const firstPair = offsets(packed.actionCounts);
const firstSuccessor = offsets(packed.successorCounts);
const P = packed.actions.length;
const lower = summed(packed.lower, S);
const gap = summed(packed.gap, S);
const upper = packed.width.map((width, i) => lower[i] + width);
const stateOf = new Int32Array(P);
for (let s = 0; s < S; s++) stateOf.fill(s, firstPair[s], firstPair[s + 1]);

const terminal = (s) => firstPair[s] === firstPair[s + 1];
const nameOf = (s) => data.stateNames?.[s] ?? `state ${s}`;
const pairsOf = (s) =>
  Array.from({ length: firstPair[s + 1] - firstPair[s] }, (_, i) => firstPair[s] + i);
const actionName = (pair) => data.actionNames[packed.actions[pair]];
const code = (setting, pair) => packed.policy[setting * P + pair];

/** Positions of the states; without a layout, in order, row by row. */
const onMap = data.dimensions > 0;
const side = Math.ceil(Math.sqrt(S));
const place = (s) => (onMap
  ? [packed.positions[s * data.dimensions], packed.positions[s * data.dimensions + 1]]
  : [s % side, -Math.floor(s / side)]);
const depth = (s) => (data.dimensions === 3 ? packed.positions[3 * s + 2] : 0);
const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);
const all = Array.from({ length: S }, (_, s) => s);
const layers = distinct(all.map(depth));
const inLayer = new Map(layers.map((layer) => [layer, all.filter((s) => depth(s) === layer)]));
const [xs, ys] = [0, 1].map((axis) => distinct(all.map((s) => place(s)[axis])));
const gapOf = (values) => Math.min(Infinity,
  ...values.slice(1).map((value, i) => value - values[i]).filter((step) => step > 1e-6));
const finite = (value) => (Number.isFinite(value) ? value : 1);
const latticed = xs.length * ys.length * layers.length <= 4 * S;
const cell = latticed ? [finite(gapOf(xs)), finite(gapOf(ys))]
  : Array(2).fill(Math.sqrt(Math.max((xs.at(-1) - xs[0]) * (ys.at(-1) - ys[0]), 1e-9) / S) || 1);

/** Where each pair leads on average, relative to its state. */
const leads = new Float32Array(2 * P);
if (onMap) {
  for (let pair = 0; pair < P; pair++) {
    const [x, y] = place(stateOf[pair]);
    let total = 0;
    for (let k = firstSuccessor[pair]; k < firstSuccessor[pair + 1]; k++) {
      const [nx, ny] = place(stateOf[pair] + packed.successors[k]);
      leads[2 * pair] += packed.chances[k] * (nx - x);
      leads[2 * pair + 1] += packed.chances[k] * (ny - y);
      total += packed.chances[k];
    }
    leads[2 * pair] /= total || 1;
    leads[2 * pair + 1] /= total || 1;
  }
}

/** An index drawn with the given weights. */
const drawn = (weights, random) => {
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  const found = weights.findIndex((weight) => (left -= weight) < 0);
  return found < 0 ? weights.findLastIndex((weight) => weight > 0) : found;
};

/** What an action weighs in a draw: its probability in thousandths as shown. */
const weight = (c) => (c === 1 ? 0.2 : Math.max(c - 1, 0));

/** The states of an episode under a setting's policy, from the selected state. */
const trajectory = (setting, start, seed) => {
  const random = generator(seed);
  const states = [start];
  while (states.length <= STEPS && !terminal(states.at(-1))) {
    const s = states.at(-1);
    const pairs = pairsOf(s);
    const pair = pairs[drawn(pairs.map((p) => weight(code(setting, p))), random)];
    const span = [firstSuccessor[pair], firstSuccessor[pair + 1]];
    const next = drawn([...packed.chances.subarray(...span), packed.ends?.[pair] ?? 0], random);
    if (next === span[1] - span[0]) break;
    states.push(s + packed.successors[span[0] + next]);
  }
  return states;
};

const shared = { selected: data.start, layer: depth(data.start), seed: 1, count: 0 };
const views = [];
const refresh = () => { for (const view of views) view.update(); };
const isDark = matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const select = (s) => {
  shared.selected = s;
  shared.layer = depth(s);
  stateBox.value = String(s);
  if (layerBox) layerBox.value = layers.indexOf(shared.layer);
  refresh();
  say(`${nameOf(s)}: ${views[0].words()}`);
};

/** A slider over the entries of a list, with the chosen one beside it. */
const slider = (label, values, first, text, onchange) => {
  const shown = make("output");
  const input = make("input", { type: "range", min: 0, max: values.length - 1, step: 1,
    autocomplete: "off", oninput: () => onchange(Number(input.value)) });
  const set = (i) => {
    input.value = i;
    shown.textContent = text(values[i]);
    input.setAttribute("aria-valuetext", text(values[i]));
  };
  set(first);
  const box = make("label", { class: "slider" }, make("span", {}, label), input, shown);
  return { box, input, set };
};

/** The map: values as colours, policies as roses, trajectories; a click selects a state. */
const map = (view) => {
  const canvas = make("canvas", { tabindex: "0", role: "application" });
  const context = canvas.getContext("2d");
  const margin = 8;
  let [X, Y, scale] = [null, null, 1];

  const states = () => inLayer.get(shared.layer);
  const nearest = (x, y) => {
    let [best, far] = [0, Infinity];
    for (const s of states()) {
      const [px, py] = place(s);
      const d = Math.hypot(X(px) - x, Y(py) - y);
      if (d < far) [best, far] = [s, d];
    }
    return best;
  };
  const move = (dx, dy) => {
    const [x, y] = place(shared.selected);
    let [best, far] = [null, Infinity];
    for (const s of states()) {
      const [px, py] = place(s);
      const along = (px - x) * dx + (py - y) * dy;
      const across = Math.abs(dx ? py - y : px - x);
      const d = along + 3 * across;
      if (along > 1e-6 && across <= along && d < far) [best, far] = [s, d];
    }
    if (best !== null) select(best);
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return nearest(event.clientX - box.left, event.clientY - box.top);
  };
  fill(canvas, {
    onclick: (event) => select(at(event)),
    onkeydown: (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      if (!step[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      move(...step[event.key]);
    },
  }, []);

  const line = (points, width, style) => {
    context.beginPath();
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    Object.assign(context, { lineWidth: width, strokeStyle: style });
    context.stroke();
  };
  const disc = (x, y, r, style, hollow = false) => {
    context.beginPath();
    context.arc(x, y, r, 0, 2 * Math.PI);
    if (hollow) {
      Object.assign(context, { lineWidth: 1, strokeStyle: style });
      context.stroke();
    } else {
      context.fillStyle = style;
      context.fill();
    }
  };
  /** Small lines towards where the actions lead, the longer the likelier. */
  const rose = (s, radius, ink) => {
    const [x, y] = [X(place(s)[0]), Y(place(s)[1])];
    const most = view.most(s);
    for (const p of pairsOf(s)) {
      const share = (code(view.setting(), p) - 1) / Math.max(most - 1, 1);
      const [dx, dy] = [leads[2 * p] * scale, -leads[2 * p + 1] * scale];
      const length = Math.hypot(dx, dy);
      if (share < 0.02) continue;
      if (length < 0.05 * scale * cell[0]) disc(x, y, 1 + 1.5 * share, ink);
      else {
        const r = radius * Math.sqrt(share) / length;
        line([[x, y], [x + dx * r, y + dy * r]], 1.3, ink);
      }
    }
  };
  /** Where each action of the selected state leads: discs for those used, rings for exact zeros. */
  const closeUp = (s) => {
    const [x, y] = [X(place(s)[0]), Y(place(s)[1])];
    const [hot, ink, paper] = ["--hot", "--ink", "--paper"].map(colour);
    const most = view.most(s);
    for (const used of [false, true]) {
      for (const p of pairsOf(s)) {
        const c = code(view.setting(), p);
        if ((c > 0) !== used) continue;
        const [px, py] = [x + leads[2 * p] * scale, y - leads[2 * p + 1] * scale];
        if (!used) disc(px, py, 2, ink, true);
        else {
          const r = 2 + 6 * Math.sqrt((c - 1) / Math.max(most - 1, 1));
          line([[x, y], [px, py]], 1.5, hot);
          disc(px, py, r + 1, paper);
          disc(px, py, r, hot);
        }
      }
    }
  };
  const paths = () => {
    const [hot, paper] = [colour("--track"), colour("--paper")];
    context.globalAlpha = shared.count > 1 ? 0.6 : 1;
    for (let i = 0; i < shared.count; i++) {
      const visited = trajectory(view.setting(), shared.selected, shared.seed + 7919 * i);
      const points = visited.map((s) => [X(place(s)[0]), Y(place(s)[1])]);
      if (shared.count === 1) line(points, 6, paper);
      line(points, shared.count > 1 ? 1.5 : 3, hot);
      disc(...points.at(-1), 4, hot);
    }
    context.globalAlpha = 1;
  };

  const redraw = () => {
    const width = canvas.clientWidth;
    if (!width) return;
    const spanX = xs.at(-1) - xs[0] + cell[0];
    const spanY = ys.at(-1) - ys[0] + cell[1];
    scale = (width - 2 * margin) / spanX;
    scale = Math.min(scale, (0.8 * innerHeight) / spanY, 100 / Math.min(...cell));
    const height = Math.round(spanY * scale + 2 * margin);
    const left = (width - spanX * scale) / 2;
    X = (x) => left + (x - xs[0] + cell[0] / 2) * scale;
    Y = (y) => margin + (ys.at(-1) - y + cell[1] / 2) * scale;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [low, high] = view.range();
    const ramp = RAMPS[isDark.matches ? "dark" : "light"];
    const shade = (s) => {
      const share = (lower[view.setting() * S + s] - low) / (high - low || 1);
      const [i, t] = share < 0.5 ? [0, 2 * share] : [1, 2 * share - 1];
      return `rgb(${ramp[i].map((c, k) => Math.round(c + t * (ramp[i + 1][k] - c))).join()})`;
    };
    const [w, h] = [cell[0] * scale, cell[1] * scale];
    for (const s of states()) {
      const [x, y] = place(s);
      context.fillStyle = shade(s);
      if (latticed) context.fillRect(X(x) - w / 2, Y(y) - h / 2, w + 0.5, h + 0.5);
      else disc(X(x), Y(y), Math.min(w, h) * 0.42, shade(s));
      if (terminal(s)) {
        Object.assign(context, { lineWidth: 2, strokeStyle: colour("--soft") });
        context.strokeRect(X(x) - w / 3, Y(y) - h / 3, w / 1.5, h / 1.5);
      }
    }
    if (onMap) {
      const every = latticed ? Math.max(1, Math.ceil(24 / Math.min(w, h))) : 1;
      const ink = colour("--ink");
      context.globalAlpha = 0.75;
      for (const s of states()) {
        const [i, j] = [Math.round((place(s)[0] - xs[0]) / cell[0]),
          Math.round((place(s)[1] - ys[0]) / cell[1])];
        const [middleI, middleJ] = [Math.floor(xs.length / 2), Math.floor(ys.length / 2)];
        if (latticed && ((i - middleI) % every || (j - middleJ) % every)) continue;
        if (s !== shared.selected) rose(s, 0.47 * every * Math.min(w, h), ink);
      }
      context.globalAlpha = 1;
      paths();
      closeUp(shared.selected);
    }
    const [x, y] = place(shared.selected);
    Object.assign(context, { lineWidth: 2.5, strokeStyle: colour("--hot") });
    context.strokeRect(X(x) - w / 2, Y(y) - h / 2, w, h);
    canvas.setAttribute("aria-label", `Map of ${states().length} states, `
      + `values from ${fixed(low, data.decimals)} to ${fixed(high, data.decimals)}. `
      + `${nameOf(shared.selected)} is selected; the arrow keys select its neighbours.`);
  };
  return { canvas, redraw };
};

/** One setting: its switch and sliders, its map, and the selected state. */
const makeView = (letter, first) => {
  const now = { ...first };
  const view = {
    most: (s) => Math.max(0, ...pairsOf(s).map((p) => code(view.setting(), p))),
    setting: () => (now.kind === "hard" ? 0 : 1 + now.q * data.alphas.length + now.alpha),
    range: () => {
      let [low, high] = [Infinity, -Infinity];
      for (let i = view.setting() * S; i < (view.setting() + 1) * S; i++) {
        low = Math.min(low, lower[i]);
        high = Math.max(high, lower[i]);
      }
      return [low, high];
    },
    now,
  };
  const kindOf = (q) => (data.qs[q] > 1 ? "sparse" : "soft");
  const nearestQ = (kind) => {
    const wanted = kind === "soft" ? 1 : 2;
    const fit = data.qs.map((_, i) => i).filter((i) => kindOf(i) === kind);
    const far = (i) => Math.abs(data.qs[i] - wanted);
    return fit.sort((i, j) => far(i) - far(j))[0] ?? null;
  };
  const radios = ["hard", "soft", "sparse"].map((kind) => {
    const input = make("input", { type: "radio", name: `kind${letter}`, value: kind,
      autocomplete: "off", onchange: () => {
        now.kind = kind;
        if (kind !== "hard" && kindOf(now.q) !== kind) now.q = nearestQ(kind);
        settle();
      } });
    input.disabled = kind !== "hard" && nearestQ(kind) === null;
    return { kind, input, label: make("label", {}, input, make("span", {}, kind)) };
  });
  const alpha = slider("α", data.alphas, now.alpha, String, (i) => { now.alpha = i; settle(); });
  const q = slider("q", data.qs, now.q, String, (i) => {
    now.q = i;
    now.kind = kindOf(i);
    settle();
  });
  const plainly = make("p", { class: "plainly" });
  const drawing = map(view);
  const [low, high] = [make("span"), make("span")];
  const legend = make("p", { class: "ramp" }, "V", low, make("i"), high);
  const key = make("p", { class: "key-words" }, ...(onMap ? [
    "Colours are values, lines lead where the policy tends to go. From the selected state: ",
    make("b", {}, "●"), " an action that is used, ○ an action of probability exactly zero."] : [
    "Colours are values; the states have no positions and are laid out in order, row by row."]));
  const title = make("h3");
  const facts = make("dl", { class: "facts" });
  const bars = make("div",
    { class: "bars", role: "list", tabindex: "0", "aria-label": "Actions and their probabilities" });
  const path = make("p");
  const visits = make("details", { class: "path" },
    make("summary", {}, "States of the trajectory"), path);

  const settle = () => {
    view.update();
    say(`${letter}: ${view.words()}`);
  };
  const codes = () => pairsOf(shared.selected).map((p) => code(view.setting(), p));
  view.words = () => {
    if (terminal(shared.selected)) return "an episode ends here";
    const used = codes().filter((c) => c > 0).length;
    const zeros = codes().length - used;
    const actions = `${used} of ${codes().length} actions`;
    if (now.kind === "hard") return `hard: ${actions}, all others exactly zero`;
    const share = used > 1 ? "share the probability" : "has all the probability";
    const others = `${zeros} ${zeros > 1 ? "have" : "has"} exactly zero`;
    return zeros ? `${now.kind}: ${actions} ${share}, ${others}`
      : `${now.kind}: ${actions} have some probability, none exactly zero`;
  };

  const bar = (pair, c, most) => {
    const inner = make("i");
    inner.style.width = `${Math.max(0, (100 * (c - 1)) / Math.max(most - 1, 1))}%`;
    return make("div", { class: c ? "bar" : "bar zero", role: "listitem" },
      make("span", { class: "name" }, actionName(pair)),
      make("span", { class: "track" }, inner),
      make("span", { class: "share" }, c ? percent(c) : "0 exactly"));
  };
  view.update = () => {
    for (const { kind, input } of radios) input.checked = kind === now.kind;
    alpha.set(now.alpha);
    q.set(now.q);
    alpha.input.disabled = q.input.disabled = now.kind === "hard";
    const s = shared.selected;
    const i = view.setting() * S + s;
    plainly.textContent = `In ${nameOf(s)}, ${view.words()}.`;
    const [least, most] = view.range();
    low.textContent = short(least / 10 ** data.decimals);
    high.textContent = short(most / 10 ** data.decimals);
    title.textContent = nameOf(s);
    const rows = terminal(s) ? [["", "terminal: an episode ends here, worth 0"]] : [
      ["Support", `${codes().filter((c) => c > 0).length} of ${codes().length} actions`],
      ["V* lies in", `[${fixed(lower[i], data.decimals)}, ${fixed(upper[i], data.decimals)}]`],
      ["Certified gap", `at most ${fixed(gap[i], data.gapDecimals)}`],
    ];
    facts.replaceChildren(...rows.flatMap(([name, value]) =>
      [make("dt", {}, name), make("dd", {}, value)]));
    const order = pairsOf(s).map((p) => [p, code(view.setting(), p)]);
    if (order.length > MANY) order.sort(([p, a], [r, b]) => b - a || p - r);
    bars.replaceChildren(...order.map(([pair, c]) => bar(pair, c, view.most(s))));
    const visited = shared.count ? trajectory(view.setting(), s, shared.seed) : [];
    const end = visited.length <= STEPS ? ", the end" : "";
    visits.hidden = !visited.length;
    path.textContent = `${visited.map(nameOf).join(" → ")}${end}`;
    drawing.redraw();
  };
  view.box = make("section", { class: "setting", "aria-label": `Setting ${letter}` },
    make("h2", {}, `Setting ${letter}`),
    make("div", { class: "controls" },
      make("fieldset", { class: "kinds" }, make("legend", { class: "unseen" }, "Policy"),
        ...radios.map(({ label }) => label)), alpha.box, q.box),
    plainly,
    make("div", { class: "two" },
      make("div", { class: "map" }, drawing.canvas, legend, key),
      make("div", { class: "state" }, title, facts, bars)),
    visits);
  new ResizeObserver(() => drawing.redraw()).observe(drawing.canvas.parentElement);
  isDark.addEventListener("change", () => drawing.redraw());
  return view;
};

const stateBox = make("select",
  { "aria-label": "State", autocomplete: "off", onchange: () => select(Number(stateBox.value)) },
  ...all.map((s) => make("option", { value: s }, nameOf(s))));
const layerSlider = layers.length > 1 ? slider("Layer", layers, layers.indexOf(shared.layer),
  (value) => written(value, { maximumSignificantDigits: 4 }), (i) => {
    const [x, y] = place(shared.selected);
    const here = inLayer.get(layers[i]);
    select(here.find((s) => place(s)[0] === x && place(s)[1] === y) ?? here[0]);
  }) : null;
const layerBox = layerSlider?.input;
const seedBox = make("input", { type: "number", min: 0, max: 999999, value: 1, autocomplete: "off",
  oninput: () => { shared.seed = Number(seedBox.value) || 0; if (shared.count) refresh(); } });
const countBox = make("select", { "aria-label": "Trajectories", autocomplete: "off",
  onchange: () => { shared.count = Number(countBox.value); refresh(); } },
  ...[["0", "none"], ["1", "one"], ["10", "ten"]].map(([value, text]) =>
    make("option", { value }, text)));
const again = () => {
  if (shared.count) {
    shared.seed = (shared.seed + 1) % 1000000;
    seedBox.value = shared.seed;
  } else {
    shared.count = 1;
    countBox.value = "1";
  }
  refresh();
  say(`Trajectory ${shared.seed} drawn`);
};
const settings = make("div", { class: "settings" });
const compareButton = make("button", { type: "button", "aria-pressed": "false", class: "strong",
  onclick: () => {
    if (views.length > 1) views.pop().box.remove();
    else {
      const { kind, alpha, q } = views[0].now;
      const soft = data.qs.findIndex((one) => one === 1);
      const same = kind === "soft" || soft < 0;
      views.push(makeView("B", { alpha, q: same ? q : soft, kind: same ? "hard" : "soft" }));
      settings.append(views[1].box);
    }
    compareButton.setAttribute("aria-pressed", views.length > 1);
    settings.classList.toggle("pair", views.length > 1);
    refresh();
    say(views.length > 1 ? "Two settings side by side" : "One setting");
  } }, "Compare two settings");

views.push(makeView("A", { kind: data.qs[data.startQ] > 1 ? "sparse" : "soft",
  alpha: data.startAlpha, q: data.startQ }));
settings.append(views[0].box);
document.getElementById("explorer").append(
  make("div", { class: "tools" },
    make("label", {}, make("span", {}, "State"), stateBox),
    ...(layerSlider ? [layerSlider.box] : []),
    make("label", {}, make("span", {}, "Trajectories"), countBox),
    make("label", {}, make("span", {}, "Seed"), seedBox),
    make("button", { type: "button", onclick: again }, "Draw a trajectory"), compareButton),
  settings);
stateBox.value = String(shared.selected);
refresh();
