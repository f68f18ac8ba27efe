"use strict";
// Shows the page that the address names, unpacks it where it is packed, and filters lists.
// Where nothing is packed, all is there to be read without scripts.
const packs = [...document.querySelectorAll("script[data-first]")];
const title = document.title;

const unzip = (script) => {
  const bytes = Uint8Array.from(atob(script.textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};

const unpack = async (path) => {
  const pack = packs.findLast((p) => p.dataset.first <= path);
  if (!pack || pack.dataset.open) return;
  pack.dataset.open = "yes";
  document.querySelector("main").insertAdjacentHTML("beforeend", await unzip(pack));
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

// The search looks for all words in the names of what pages show.
let index = null;
const search = document.getElementById("search");
search.addEventListener("input", async () => {
  index ??= unzip(document.getElementById("index")).then(JSON.parse);
  const all = await index;
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = words.length ? all.filter(([name, of]) => words.every((w) => (name + " " + of).toLowerCase().includes(w))) : [];
  const exact = ([name]) => (words.includes(name.toLowerCase()) ? 0 : 1);
  hits.sort((a, b) => exact(a) - exact(b)); // stable
  const rows = hits.slice(0, 50).map(([name, of, address]) => {
    const row = document.createElement("li");
    const link = row.appendChild(document.createElement("a"));
    link.href = address;
    link.textContent = name;
    row.append(" " + of);
    return row;
  });
  const rest = hits.length > 50 ? `and ${hits.length - 50} more` : words.length && !hits.length ? "nothing has it in its name" : "";
  if (rest) rows.push(Object.assign(document.createElement("li"), { textContent: rest }));
  document.getElementById("found").replaceChildren(...rows);
});

document.addEventListener("input", (event) => {
  if (!event.target.matches("input[data-filter]")) return;
  const wanted = event.target.value.toLowerCase();
  for (const row of event.target.closest(".page").querySelectorAll("[data-list] > tbody > tr")) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
});
