// Lets tables sort and filter, and copies commands; the page is whole without.
const make = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const fill = (element, attributes, children) => {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
};

const voice = make("p", { class: "unseen", role: "status" });
const say = (text) => { voice.textContent = text; };
document.body.append(voice);

const written = (value, options) =>
  new Intl.NumberFormat("en", options).format(value).replaceAll("-", "−");
const short = (value) => written(value, { maximumSignificantDigits: 4 });

const plain = (text) => text.replaceAll("−", "-").trim().toLowerCase();

const NUMBER = /^[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+|(?=\.\d))(?:\.\d+)?(?:e[-+]?\d+)?/;

/** The number that a cell begins with, or null. */
const leading = (text) => {
  const found = NUMBER.exec(text);
  if (found) return Number(found[0].replaceAll(",", ""));
  return /^[-+]?inf/.test(text) ? Number(text[0] === "-" ? -Infinity : Infinity) : null;
};

/** What a cell is sorted by: numbers come before words, and empty cells last. */
const sortKey = (cell) => {
  const text = plain(cell?.textContent ?? "");
  const number = leading(text);
  return { text, number, rank: text === "" || text === "nan" ? 2 : number === null ? 1 : 0 };
};

const compare = (a, b, direction) => {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.rank === 0) return direction * (a.number - b.number || 0);
  return direction * a.text.localeCompare(b.text, "en", { numeric: true });
};

const sortable = (table) => {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const sort = (column) => {
    const now = heads[column].getAttribute("aria-sort");
    const next = { ascending: "descending", descending: "" }[now] ?? "ascending";
    for (const head of heads) head.removeAttribute("aria-sort");
    const rows = original.map((row) => [row, sortKey(row.cells[column])]);
    if (next) {
      heads[column].setAttribute("aria-sort", next);
      rows.sort(([, a], [, b]) => compare(a, b, next === "ascending" ? 1 : -1));
    }
    body.append(...rows.map(([row]) => row));
    const name = heads[column].textContent;
    say(next ? `Sorted by ${name}, ${next}` : "In the original order");
  };
  heads.forEach((head, column) => {
    const button = make("button", { type: "button", onclick: () => sort(column) });
    button.append(...head.childNodes);
    head.append(button);
  });
};

const filterable = (table) => {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => plain([...row.cells].map((c) => c.textContent).join(" ")));
  const count = make("output");
  const filter = () => {
    const words = plain(input.value).split(/\s+/);
    rows.forEach((row, i) => { row.hidden = !words.every((word) => texts[i].includes(word)); });
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  const input = make("input", { type: "search", autocomplete: "off", oninput: filter });
  table.parentElement.before(
    make("div", { class: "filter" }, make("label", {}, "Filter rows ", input), count));
  filter();
};

for (const table of document.querySelectorAll(".wide > table")) {
  if (table.tBodies[0].rows.length > 1) sortable(table);
  if (table.tBodies[0].rows.length > 8) filterable(table);
}

for (const block of document.querySelectorAll("pre")) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(block.textContent);
    } catch {
      getSelection().selectAllChildren(block);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    say("Copied");
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  const button = make("button", { type: "button", "aria-label": "Copy the command", onclick: copy },
    "Copy");
  const box = make("div", { class: "command" });
  block.replaceWith(box);
  box.append(block, button);
}
