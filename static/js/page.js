// Small behaviours every page may use, each switched on by a data attribute.

// A form keeps what was typed until it is sent: closing the tab asks first.
let unsent = false;
document.addEventListener("input", (event) => {
  if (event.target.closest("form[data-keep]")) unsent = true;
});
document.addEventListener("submit", () => { unsent = false; });
window.addEventListener("beforeunload", (event) => { if (unsent) event.preventDefault(); });

// Copy the text of the element that data-copy names.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 1500);
});

// A slider's number follows it.
document.addEventListener("input", (event) => {
  const shown = document.querySelector(`output[data-of="${CSS.escape(event.target.id)}"]`);
  if (shown) shown.textContent = event.target.value;
});

// The connection is down when a polling fragment cannot be fetched; say so until it heals.
const offline = (down) => document.documentElement.toggleAttribute("data-offline", down);
document.addEventListener("htmx:sendError", () => offline(true));
document.addEventListener("htmx:afterOnLoad", () => offline(false));
// A 204 answer means "nothing new": leave the page as it is.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status === 204) event.detail.shouldSwap = false;
});
