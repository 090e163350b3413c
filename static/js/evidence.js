// Evidence opens above the page that cites it; a long one is loaded a few hundred lines at a time.

const ADDRESS = /^\/sessions\/[0-9a-f-]{36}\/evidence\/[^/]+$/;
const above = document.getElementById("evidence");
const DROPPED_FROM = 2400; // rows kept in the page at most; the far ones go, and come back when asked for
const ROWS = 200; // as many as one answer has
const AHEAD = 2500; // px beyond what is seen, so that a wheel seldom has to wait

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || !above || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  if (link.hasAttribute("download") || "page" in link.dataset) return;
  if (document.querySelector("main [data-viewer]")) return; // one at a time: there, links lead on
  const inside = link.closest("[data-viewer]");
  const target =
    inside && link.classList.contains("ln")
      ? new URL(link.getAttribute("href"), location.origin + inside.dataset.place)
      : new URL(link.href);
  if (target.origin !== location.origin || !ADDRESS.test(target.pathname) || target.searchParams.has("download"))
    return;
  event.preventDefault();
  htmx.ajax("GET", target.pathname + target.search, { target: "#evidence-body", swap: "innerHTML" }).then(() => {
    if (!above.open) above.showModal();
    ready(above.querySelector("[data-viewer]"), true);
  });
});
// A closed dialog holds nothing: ids of its lines must not hide those of the page.
above?.addEventListener("close", () => above.querySelector("#evidence-body").replaceChildren());

function ready(viewer, focused) {
  const lines = viewer?.querySelector("[data-lines]");
  if (!lines || lines.dataset.ready) return;
  lines.dataset.ready = "1";
  const slider = viewer.querySelector("[data-place-slider]");
  if (slider) {
    slider.hidden = false;
    slider.addEventListener("change", () => jump(viewer, +slider.value));
  }
  lines.addEventListener("scroll", () => requestAnimationFrame(() => extend(viewer)), { passive: true });
  lines.addEventListener("keydown", (event) => {
    if (event.key === "Home") jump(viewer, 1);
    else if (event.key === "End") jump(viewer, +viewer.dataset.total);
    else return;
    event.preventDefault();
  });
  center(lines, lines.querySelector(`[data-n="${lines.dataset.at}"]`));
  if (focused) lines.focus({ preventScroll: true });
}
const center = (lines, row) => {
  if (row)
    lines.scrollTop += row.getBoundingClientRect().top - lines.getBoundingClientRect().top - lines.clientHeight / 3;
};

const rows = async (viewer, first) => {
  const query = new URLSearchParams({ rows: first, line: viewer.dataset.marked, find: viewer.dataset.find });
  const answer = await fetch(`${viewer.dataset.place}?${query}`, { headers: { "HX-Request": "true" } }).catch(
    () => null,
  );
  const holder = document.createElement("template");
  holder.innerHTML = answer?.ok ? await answer.text() : ""; // none without a connection: asked again at the next scroll
  return [...holder.content.children];
};
const number = (row) => +row.dataset.n;

async function extend(viewer) {
  const lines = viewer.querySelector("[data-lines]");
  if (lines.dataset.loading || !lines.firstElementChild) return;
  const [top, bottom] = [number(lines.firstElementChild), number(lines.lastElementChild)];
  const up = lines.scrollTop < AHEAD && top > 1;
  const down = lines.scrollHeight - lines.scrollTop - lines.clientHeight < AHEAD && bottom < +viewer.dataset.total;
  if (!up && !down) return;
  lines.dataset.loading = "1";
  const first = up ? Math.max(1, top - ROWS) : bottom + 1;
  const found = (await rows(viewer, first)).filter((row) => (up ? number(row) < top : true));
  const fixed = up ? lines.firstElementChild : lines.lastElementChild;
  const was = fixed.offsetTop;
  if (up) lines.prepend(...found);
  else lines.append(...found);
  while (lines.childElementCount > DROPPED_FROM) (up ? lines.lastElementChild : lines.firstElementChild).remove();
  lines.scrollTop += fixed.offsetTop - was;
  delete lines.dataset.loading;
  if (found.length) requestAnimationFrame(() => extend(viewer)); // it may have been scrolled further since
}

async function jump(viewer, line) {
  const lines = viewer.querySelector("[data-lines]");
  lines.dataset.loading = "1";
  const found = await rows(viewer, Math.max(1, line - ROWS / 2));
  if (found.length) lines.replaceChildren(...found);
  center(lines, lines.querySelector(`[data-n="${line}"]`));
  delete lines.dataset.loading;
  extend(viewer);
}

document.addEventListener("DOMContentLoaded", () => ready(document.querySelector("main [data-viewer]"), false));
document.addEventListener("htmx:afterSettle", () => {
  for (const viewer of document.querySelectorAll("[data-viewer]")) ready(viewer, false);
});
