// The palette (Ctrl K): this page's steps and what the server knows, by the first letters typed; keys.js opens it.

const palette = document.getElementById("palette");

const open = (id) => {
  const shown = document.getElementById(id);
  if (!shown || shown.matches(":popover-open")) return;
  for (const menu of document.querySelectorAll("details[data-menu][open]")) menu.open = false;
  for (const modal of document.querySelectorAll("dialog[open]")) modal.close(); // what is outside of it cannot be used
  shown.showPopover();
};
// Before it opens, not after: "toggle" comes when the first letters may already be typed, and would lose them.
palette?.addEventListener("beforetoggle", (event) => {
  if (event.newState === "open") fill();
});
for (const button of document.querySelectorAll("[data-open]")) {
  button.addEventListener("click", () => open(button.dataset.open));
}
// A click on what is behind a dialog closes it, as the browser does with popovers.
for (const dialog of document.querySelectorAll("dialog:not([popover])")) {
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}

// Entries are this page's steps, then what the server knows; both are links.
let entries = null;
let coming = null;
const box = palette?.querySelector("input");
const list = palette?.querySelector("ul");
const here = () =>
  [...document.querySelectorAll(".rail a")].map((link) => ({
    text: link.querySelector("b")?.firstChild.textContent ?? link.textContent,
    kind: "this session",
    href: link.href,
  }));
const everywhere = (words) =>
  words.length
    ? [
        {
          text: `“${box.value.trim()}”`,
          kind: "search everything",
          href: `/search?q=${encodeURIComponent(box.value.trim())}`,
        },
      ]
    : [];
async function fill() {
  box.value = "";
  render();
  coming ??= fetch(palette.dataset.entries)
    .then((answer) => (answer.ok ? answer.json() : null))
    .catch(() => null);
  entries = await coming;
  if (!entries) coming = null; // asked again when it opens next
  render();
}
function render() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...here(), ...(entries ?? [])];
  const found = all.filter(({ text, kind }) => words.every((word) => `${text} ${kind}`.toLowerCase().includes(word)));
  list.replaceChildren(
    ...[...found.slice(0, 40), ...everywhere(words)].map(({ text, kind, href }, index) => {
      const row = document.createElement("li");
      const about = document.createElement("span");
      Object.assign(row, { id: `palette-${index}`, role: "option", textContent: text });
      row.dataset.href = href;
      about.textContent = kind;
      row.append(about);
      row.addEventListener("click", () => go(row));
      return row;
    }),
  );
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
  else if (event.key === "Enter")
    Promise.resolve(coming).then(() => go(chosen())); // the list may come later
  else return;
  event.preventDefault();
});
