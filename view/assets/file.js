"use strict";
// Shows the page that the address names, unpacks it where it is packed, and filters lists.
// Where nothing is packed, all is there to be read without scripts.
const packs = [...document.querySelectorAll("script[data-first]")];
const title = document.title;

const unpack = async (path) => {
  const pack = packs.findLast((p) => p.dataset.first <= path);
  if (!pack || pack.dataset.open) return;
  pack.dataset.open = "yes";
  const bytes = Uint8Array.from(atob(pack.textContent), (c) => c.charCodeAt(0));
  const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  document.querySelector("main").insertAdjacentHTML("beforeend", text);
};

const show = async () => {
  const path = location.hash.slice(1);
  if (path.startsWith("/") && !document.getElementById(path)) await unpack(path);
  if (location.hash.slice(1) !== path) return; // meanwhile it is another
  const page = document.getElementById(path);
  for (const other of document.querySelectorAll(".page.shown")) other.classList.remove("shown");
  if (page?.matches(".page")) page.classList.add("shown"); // it is no :target if it was packed
  document.title = page?.dataset.title ? page.dataset.title + " · " + title : title;
  scrollTo(0, 0);
};
addEventListener("hashchange", show);
show();

document.addEventListener("input", (event) => {
  if (!event.target.matches("input[data-filter]")) return;
  const wanted = event.target.value.toLowerCase();
  for (const row of event.target.closest(".page").querySelectorAll("[data-list] > tbody > tr")) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
});
