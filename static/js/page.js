// Small behaviours every page may use, each switched on by a data attribute.

// A form keeps what was typed until it is sent: closing the tab asks first.
let unsent = document.querySelector("form[data-unsent]") !== null;
document.addEventListener("input", (event) => {
  if (event.target.closest("form[data-keep]")) unsent = true;
});
document.addEventListener("submit", () => {
  unsent = false;
});
window.addEventListener("beforeunload", (event) => {
  if (unsent) event.preventDefault();
});

// Copy the text of the elements that data-copy names, or the address in data-copy-link.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-link]");
  if (!button) return;
  const found = button.dataset.copy ? [...document.querySelectorAll(button.dataset.copy)] : [];
  const text = button.dataset.copyLink
    ? new URL(button.dataset.copyLink, location).href
    : found.map((element) => element.textContent).join("\n");
  await navigator.clipboard.writeText(text);
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = label;
  }, 1500);
});

// What a link leads to comes in its place; without a script, or in another tab, it leads there.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-here]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  htmx.ajax("GET", link.href, { target: link, swap: "outerHTML" });
});

// What is ticked far above is named in the form that sends it.
document.addEventListener("change", (event) => {
  const list = document.querySelector(`[data-ticked="${CSS.escape(event.target.name ?? "")}"]`);
  if (!list) return;
  const ticked = document.querySelectorAll(`input[name="${event.target.name}"]:checked`);
  const titles = [...ticked].map((box) => box.closest("label").textContent.trim());
  list.replaceChildren(
    ...(titles.length ? titles : ["nothing yet"]).map((title) => {
      const item = document.createElement("li");
      item.textContent = title;
      return item;
    }),
  );
});

// One menu is open at a time; Esc or a click elsewhere closes it.
const menus = () => document.querySelectorAll("details[data-menu][open]");
document.addEventListener("click", (event) => {
  for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of menus()) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// A word's meaning on hover, focus or tap, from the help page it leads to; the second tap goes there.
const pages = new Map();
const meaning = async ({ pathname, hash }) => {
  if (!pages.has(pathname)) {
    pages.set(
      pathname,
      fetch(pathname)
        .then((answer) => answer.text())
        .then((text) => new DOMParser().parseFromString(text, "text/html")),
    );
  }
  return (await pages.get(pathname)).getElementById(hash.slice(1))?.querySelector("p")?.textContent;
};
const unsay = () => document.querySelectorAll(".says").forEach((element) => element.remove());
const say = async (word) => {
  const text = await meaning(word);
  unsay();
  if (!text || !word.matches(":hover, :focus")) return;
  const box = document.createElement("div");
  box.className = "says";
  box.setAttribute("role", "tooltip");
  box.textContent = text;
  document.body.append(box);
  const at = word.getBoundingClientRect();
  const left = Math.max(12, Math.min(at.left, innerWidth - box.offsetWidth - 12));
  const below = at.bottom + box.offsetHeight + 12 < innerHeight;
  box.style.left = `${left + scrollX}px`;
  box.style.top = `${(below ? at.bottom + 6 : at.top - box.offsetHeight - 6) + scrollY}px`;
};
for (const kind of ["mouseover", "focusin"]) {
  document.addEventListener(kind, (event) => {
    const word = event.target.closest?.("a.word");
    if (word) say(word);
    else if (kind === "mouseover" && !event.target.closest?.(".says")) unsay();
  });
}
document.addEventListener("focusout", unsay);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") unsay();
});
document.addEventListener("click", (event) => {
  const word = event.target.closest("a.word");
  if (word && matchMedia("(hover: none)").matches && !document.querySelector(".says")) event.preventDefault();
});
