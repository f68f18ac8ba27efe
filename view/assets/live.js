"use strict";
// A server whose data changes sends an event for each generation of it: what the page shows is
// then fetched again. A page listens while it is seen, as a browser has few connections to a
// server. The first event says which generation there is.
(() => {
  let events = null;

  const refresh = async () => {
    const open = [...document.querySelectorAll("details[open] > summary")].map((s) => s.textContent);
    const typed = document.activeElement?.matches("input[type=search]") ? document.activeElement.value : null;
    const answer = await fetch(location.href);
    if (answer.status === 401) return location.reload(); // nobody knows any more who asks: the server says where to sign in
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!page.querySelector("body > main")) return; // the server cannot answer now
    for (const part of ["header", "main", "footer"]) document.querySelector("body > " + part).replaceWith(page.querySelector("body > " + part));
    document.title = page.title;
    for (const s of document.querySelectorAll("details > summary")) s.parentElement.open = open.includes(s.textContent);
    const field = document.querySelector("input[type=search]");
    if (typed !== null && field) {
      field.value = typed;
      field.focus();
    }
    window.htmx?.process(document.body);
  };

  const listen = () => {
    events?.close();
    events = null;
    if (document.visibilityState === "hidden") return;
    events = new EventSource("/events");
    events.addEventListener("generation", (event) => {
      if (document.querySelector("main").dataset.generation !== event.data) refresh().catch(() => {}); // the server is gone, and the page stays
    });
    events.addEventListener("error", ({ target }) => {
      if (target.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      refresh().catch(() => {});
      setTimeout(() => target === events && listen(), 5000);
    });
  };
  document.addEventListener("visibilitychange", listen);
  addEventListener("pagehide", () => events?.close());
  addEventListener("pageshow", listen);
})();
