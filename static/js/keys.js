// The keyboard: "/" for search, "g" and a letter to go somewhere, "?" for this list; Ctrl K opens palette.js.

const mac = /Mac|iPhone|iPad/.test(navigator.platform);
if (mac) for (const key of document.querySelectorAll("kbd")) key.textContent = key.textContent.replace("Ctrl", "⌘");

const typing = (element) => element.closest?.("input, textarea, select, [contenteditable]");

const PLACES = { s: "Sessions", d: "Decisions", m: "For me", h: "Help" };
function place(key) {
  if (PLACES[key])
    return [...document.querySelectorAll(".top nav > a")].find((a) => a.textContent.startsWith(PLACES[key]));
  if (key === "t") return document.querySelector("[data-topology]");
  return /^[1-8]$/.test(key) ? document.querySelectorAll(".rail ol a")[key - 1] : null;
}
function search() {
  const field = document.querySelector("main [role=search] input:not([type=hidden])");
  if (field) field.focus();
  else open("palette");
}
// Sections get the focus in turn, so that a reader without a mouse need not tab through every link.
function section(by) {
  const all = [...document.querySelectorAll("main .card")].filter(
    (card) => card.offsetParent && !card.parentElement.closest(".card"),
  );
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
  if (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    typing(event.target) ||
    document.querySelector("dialog[open], :popover-open")
  )
    return;
  if (Date.now() - went < 1500) {
    went = 0;
    const link = place(event.key);
    if (link) {
      event.preventDefault();
      link.click();
    }
    return;
  }
  const acts = {
    g: () => {
      went = Date.now();
    },
    "/": search,
    "?": () => open("shortcuts"),
    j: () => section(1),
    k: () => section(-1),
  };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
});
