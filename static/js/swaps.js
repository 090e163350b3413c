// What a reader has stays when a newer fragment takes the place of the one it is in.

// Live output stays where its reader scrolled to; at its end it follows.
const scrolled = new Map();
document.addEventListener("htmx:beforeSwap", () => {
  for (const box of document.querySelectorAll("[data-scroll]")) {
    const atEnd = box.scrollTop > 0 && box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
    scrolled.set(box.id, atEnd ? Infinity : box.scrollTop);
  }
});
document.addEventListener("htmx:afterSwap", () => {
  for (const box of document.querySelectorAll("[data-scroll]")) {
    if (scrolled.has(box.id)) box.scrollTop = Math.min(scrolled.get(box.id), box.scrollHeight);
  }
});

// What somebody is typing in is not replaced: the fragment asks again, and comes when they are through.
const typed = (root) =>
  [...root.querySelectorAll("input:not([type=hidden]), textarea")].some(
    (field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked,
  );
document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, requestConfig } = event.detail;
  if (requestConfig.elt === target && typed(target)) event.detail.shouldSwap = false;
});

// The focus, and what is open, go to what is called the same: of its kind, with its words, the first or the second …
const called = (element) =>
  element.id || [element.name, element.getAttribute("href"), element.textContent.trim()].join("\n");
const alike = (element) =>
  [...document.querySelectorAll(element.localName)].filter((other) => called(other) === called(element));
const noted = (element) => ({ element, at: alike(element).indexOf(element) });
const again = ({ element, at }) => alike(element)[at];
const give = (element) => {
  if (!element) return false;
  if (element.tabIndex < 0) element.tabIndex = -1;
  element.focus({ preventScroll: true });
  return document.activeElement === element;
};

let focused = null;
let opened = [];
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (!detail.shouldSwap) return;
  const around = [];
  const active = document.activeElement;
  for (let box = active; box; box = box.parentElement) if (box.id) around.push(box.id);
  // Where nothing has the focus, the whole page need not be read.
  focused = active === document.body ? null : { ...noted(active), around };
  opened = [...detail.target.querySelectorAll("details[open] > summary")].map(noted);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const one of opened) if (!one.element.isConnected) again(one)?.parentElement.setAttribute("open", "");
  if (!focused || focused.element.isConnected || document.activeElement !== document.body) return;
  // Gone, or of no use, as “Cancel” when a run has ended: what it stood in has it, so that Tab goes on from there.
  if (!give(again(focused))) focused.around.map((id) => document.getElementById(id)).some(give);
});
