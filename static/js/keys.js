// The keyboard: the palette (Ctrl K), "/" for search, "g" and a letter to go somewhere, "?" for this list.

const mac = /Mac|iPhone|iPad/.test(navigator.platform);
if (mac) for (const key of document.querySelectorAll("kbd")) key.textContent = key.textContent.replace("Ctrl", "⌘");

const palette = document.getElementById("palette");
const typing = (element) => element.closest?.("input, textarea, select, [contenteditable]");

const open = (id) => {
  const shown = document.getElementById(id);
  if (!shown || shown.matches(":popover-open")) return;
  for (const menu of document.querySelectorAll("details[data-menu][open]")) menu.open = false;
  for (const modal of document.querySelectorAll("dialog[open]")) modal.close(); // what is outside of it cannot be used
  shown.showPopover();
};
// Before it opens, not after: "toggle" comes when the first letters may already be typed, and would lose them.
palette?.addEventListener("beforetoggle", (event) => { if (event.newState === "open") fill(); });
for (const button of document.querySelectorAll("[data-open]")) {
  button.addEventListener("click", () => open(button.dataset.open));
}
// A click on what is behind a dialog closes it, as the browser does with popovers.
for (const dialog of document.querySelectorAll("dialog:not([popover])")) {
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}

// Entries are this page's steps, then what the server knows; both are links.
let entries = null;
let coming = null;
const box = palette?.querySelector("input");
const list = palette?.querySelector("ul");
const here = () => [...document.querySelectorAll(".rail a")].map((link) => (
  { text: link.querySelector("b")?.firstChild.textContent ?? link.textContent, kind: "this session", href: link.href }
));
const everywhere = (words) => (words.length ? [{ text: `“${box.value.trim()}”`, kind: "search everything", href: `/search?q=${encodeURIComponent(box.value.trim())}` }] : []);
async function fill() {
  box.value = "";
  render();
  coming ??= fetch(palette.dataset.entries).then((answer) => (answer.ok ? answer.json() : null)).catch(() => null);
  entries = await coming;
  if (!entries) coming = null; // asked again when it opens next
  render();
}
function render() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...here(), ...(entries ?? [])];
  const found = all.filter(({ text, kind }) => words.every((word) => `${text} ${kind}`.toLowerCase().includes(word)));
  list.replaceChildren(...[...found.slice(0, 40), ...everywhere(words)].map(({ text, kind, href }, index) => {
    const row = document.createElement("li");
    const about = document.createElement("span");
    Object.assign(row, { id: `palette-${index}`, role: "option", textContent: text });
    row.dataset.href = href;
    about.textContent = kind;
    row.append(about);
    row.addEventListener("click", () => go(row));
    return row;
  }));
  choose(list.firstElementChild);
}
const chosen = () => list.querySelector("[aria-selected=true]");
function choose(row) {
  for (const other of list.children) other.setAttribute("aria-selected", String(other === row));
  box.setAttribute("aria-activedescendant", row?.id ?? "");
  row?.scrollIntoView({ block: "nearest" });
}
function go(row) {
  if (!row) return;
  palette.hidePopover();
  location.assign(row.dataset.href);
}
box?.addEventListener("input", render);
box?.addEventListener("keydown", (event) => {
  const row = chosen();
  if (event.key === "ArrowDown") choose(row?.nextElementSibling ?? list.firstElementChild);
  else if (event.key === "ArrowUp") choose(row?.previousElementSibling ?? list.lastElementChild);
  else if (event.key === "Enter") Promise.resolve(coming).then(() => go(chosen())); // who types faster than the list comes gets it all the same
  else return;
  event.preventDefault();
});

const PLACES = { s: "Sessions", d: "Decisions", m: "For me", h: "Help" };
function place(key) {
  if (PLACES[key]) return [...document.querySelectorAll(".top nav > a")].find((a) => a.textContent.startsWith(PLACES[key]));
  if (key === "t") return document.querySelector("[data-topology]");
  return /^[1-8]$/.test(key) ? document.querySelectorAll(".rail ol a")[key - 1] : null;
}
function search() {
  const field = document.querySelector("main [role=search] input:not([type=hidden])");
  if (field) field.focus(); else open("palette");
}
// Sections get the focus in turn, so that a reader without a mouse need not tab through every link.
function section(by) {
  const all = [...document.querySelectorAll("main .card")].filter((card) => card.offsetParent && !card.parentElement.closest(".card"));
  const at = all.indexOf(document.activeElement.closest?.("main .card"));
  const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
  if (!next) return;
  const place = next.matches("details") ? next.firstElementChild : next; // a folded one opens with Enter
  if (place === next) next.tabIndex = -1;
  place.focus();
  next.scrollIntoView({ block: "start" });
}

let went = 0;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    open("palette");
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open], :popover-open")) return;
  if (Date.now() - went < 1500) {
    went = 0;
    const link = place(event.key);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  const acts = { g: () => { went = Date.now(); }, "/": search, "?": () => open("shortcuts"), j: () => section(1), k: () => section(-1) };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
});
