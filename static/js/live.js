// What changes while one looks: the connection, the runs of this page, and what came meanwhile.

// A notice for a moment; it stays while the pointer is on it or something in it has the focus.
const toast = (text, kind = "", href = "") => {
  const box = document.createElement("div");
  box.className = `toast ${kind}`;
  const said = document.createElement(href ? "a" : "span");
  said.textContent = text;
  if (href) said.href = href;
  const close = document.createElement("button");
  close.className = "btn plain";
  close.textContent = "Close";
  close.addEventListener("click", () => box.remove());
  box.append(said, close);
  document.getElementById("toasts").append(box);
  const leave = () => {
    if (box.matches(":hover, :focus-within")) setTimeout(leave, 2000);
    else box.remove();
  };
  setTimeout(leave, 12000);
};

// A fragment that cannot be fetched, from nobody or through a proxy with nobody behind it: said until one comes.
const down = document.createElement("div");
down.className = "toast bad";
down.textContent = "Connection to Peerpath lost; this heals by itself.";
const offline = (lost) => {
  if (lost === down.isConnected) return;
  if (lost) document.getElementById("toasts").append(down);
  else down.remove();
  show();
};
for (const kind of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(kind, () => offline(true));
document.addEventListener("htmx:afterOnLoad", (event) => offline([502, 503, 504].includes(event.detail.xhr.status)));

// The tab tells the state of the run that this page watches: in its title and in its icon. Who holds it still, or is
// cut off, does not know it.
const title = document.title;
const icon = document.querySelector("link[rel=icon]");
const paused = new Set();
const OF = { succeeded: "ok", partly: "ok", failed: "bad", lost: "bad", cancelled: "idle" };
let watched = null;
const show = () => {
  const going = document.querySelector("[data-run][data-going]");
  if (going) watched = going.dataset.run;
  const run = going ?? (watched && document.querySelector(`[data-run="${watched}"]`));
  const state = run && (going ? run.dataset.progress || "…" : run.dataset.state);
  const unknown = down.isConnected ? "connection lost" : going && paused.has(going.dataset.run) ? "paused" : "";
  const said = unknown || state;
  icon.href = icon.dataset[unknown ? "idle" : going ? "running" : (OF[state] ?? "idle")];
  document.title = said ? `${said} · ${title}` : title;
};
document.addEventListener("DOMContentLoaded", show);
document.addEventListener("htmx:afterSettle", show);
document.addEventListener("visibilitychange", () => {
  // Who came back has seen that it ended.
  if (document.visibilityState === "visible" && watched && !document.querySelector("[data-run][data-going]")) {
    watched = null;
    show();
  }
});

// Live output can be held still, to be read; the run goes on.
const still = ({ target, requestConfig }) => paused.has(target.dataset.run) && requestConfig.verb === "get";
document.addEventListener("htmx:beforeRequest", (event) => {
  if (still(event.detail)) event.preventDefault();
});
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (still(detail)) detail.shouldSwap = false;
}); // asked for before it was held
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-pause]");
  if (!button) return;
  const run = button.dataset.pause;
  if (!paused.delete(run)) paused.add(run);
  pressed();
  show();
});
// It stays held when “Cancel” brings the fragment anew.
const pressed = () => {
  for (const button of document.querySelectorAll("[data-pause]"))
    button.setAttribute("aria-pressed", String(paused.has(button.dataset.pause)));
};
document.addEventListener("htmx:afterSettle", pressed);

// The feed brings what happened in this session: a run that ended is told wherever one is in it.
const newest = (root) => Math.max(0, ...[...root.querySelectorAll("[data-event]")].map((e) => +e.dataset.event));
let seen = newest(document);
document.addEventListener("htmx:afterSettle", () => {
  for (const entry of document.querySelectorAll("[data-event][data-ended]")) {
    if (+entry.dataset.event > seen) {
      toast(`Run ${entry.dataset.ended} ended: ${entry.dataset.state}.`, OF[entry.dataset.state], entry.dataset.href);
    }
  }
  seen = Math.max(seen, newest(document));
});
// The page that watches the run hears of it at once: ask the feed now instead of in 15 s.
document.addEventListener("run-ended", () => htmx.trigger("#activity", "look"));
