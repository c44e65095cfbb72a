(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // What the keyboard is at stays so when its part of the page is made anew.
  const focusable = () => all("main a, main button, main summary, main input");
  const keepFocus = (change) => {
    const held = document.activeElement;
    const place = focusable().indexOf(held);
    change();
    if (place < 0 || held.isConnected) return;
    const same = (part) => part?.tagName === held.tagName && part.textContent === held.textContent;
    const now = focusable();
    const found = same(now[place]) ? now[place] : now.find(same) ?? now[place];
    found?.focus({ preventScroll: true });
  };

  // A list whose order a person chose is left as it is; else its rows alone are made anew, since
  // its headings sort.
  const renewList = (own, other) => {
    if (own.querySelector("[aria-sort]")) return;
    for (const table of all("table.sortable", own)) {
      const fresh = other.querySelector(`#${table.id}`);
      if (fresh && table.textContent !== fresh.textContent) {
        [...table.tBodies].forEach((body) => body.remove());
        table.append(...fresh.tBodies);
      }
    }
    if (!other.querySelector("[data-live]")) own.querySelector("[data-live]")?.remove();
  };

  // A page that shows something going on is fetched anew now and then, what is unfolded stays so.
  const renew = async () => {
    const live = document.querySelector("[data-live]");
    if (!live) return;
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { headers: { accept: "text/html" } });
        if (answer.ok) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          const open = all("main details").map((part) => part.open);
          const [own, other] = [document.querySelector("main"), page.querySelector("main")];
          if (other && own.querySelector("table.sortable")) {
            keepFocus(() => renewList(own, other));
          } else if (other && own.innerHTML !== other.innerHTML) {
            keepFocus(() => {
              own.innerHTML = other.innerHTML;
              all("main details").forEach((part, i) => { part.open = open[i] ?? part.open; });
            });
            all("[data-needs-script]").forEach((part) => { part.hidden = false; });
          }
        }
      } catch { /* The server may be gone for a moment. */ }
    }
    setTimeout(renew, Number(live.dataset.live));
  };
  if (document.querySelector("[data-live]")) setTimeout(renew, 2000);

  // Keys: an element says which one is its own. While text is typed only Escape and
  // Ctrl+Enter mean something.
  const typed = (element) => element && (element.tagName === "TEXTAREA" || element.tagName === "SELECT"
    || (element.tagName === "INPUT" && !["radio", "checkbox", "submit", "button"].includes(element.type)));
  document.addEventListener("keydown", (event) => {
    const element = document.activeElement;
    if (typed(element)) {
      if (event.key === "Escape") element.blur();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) element.form?.requestSubmit();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // A button or link in focus is pressed by Enter itself.
    if (event.key === "Enter" && ["BUTTON", "A", "SUMMARY"].includes(element?.tagName)) return;
    const own = all("[data-key]").find((part) => part.dataset.key === event.key);
    if (!own) return;
    event.preventDefault();
    // What can't be taken back is pressed by a second key.
    if (typed(own) || own.dataset.twice !== undefined) own.focus();
    else if (own.tagName === "INPUT") { own.checked = true; own.focus(); }
    else own.click();
  });
})();
