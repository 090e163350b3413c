// What is folded is found: by a link, and on paper. Searching in the page opens it by the browser itself.

// A link into a folded part opens it, from another page and from this one; so does going back to it.
const unfold = (hash) => {
  const target = hash.length > 1 && document.getElementById(hash.slice(1));
  if (!target) return;
  let folded = target.closest("details:not([open])");
  if (!folded) return;
  for (; folded; folded = folded.parentElement.closest("details:not([open])")) folded.open = true;
  target.scrollIntoView();
};
document.addEventListener("DOMContentLoaded", () => unfold(location.hash));
window.addEventListener("hashchange", () => unfold(location.hash));
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href*='#']");
  if (link && link.href.split("#")[0] === location.href.split("#")[0]) unfold(link.hash);
});

// Paper has nothing to open. Style sheets say so as well; browsers that do not know how get it from here.
const folded = new Set();
window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("main details:not([open])")) {
    part.open = true;
    folded.add(part);
  }
});
window.addEventListener("afterprint", () => {
  for (const part of folded) part.open = false;
  folded.clear();
});
