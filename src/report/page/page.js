(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  for (const table of all("table.sortable")) {
    const headings = all("thead th", table);
    headings.forEach((heading, column) => {
      const button = heading.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keyed = [...table.tBodies].map((body) => {
          const cell = body.rows[0].cells[column];
          return [cell.dataset.v ?? cell.textContent.trim(), body];
        });
        const numbers = keyed.every(([key]) => key === "" || !Number.isNaN(Number(key)));
        const order = (a, b) => {
          if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
          const by = numbers ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true });
          return down ? -by : by;
        };
        keyed.sort((a, b) => order(a[0], b[0]));
        table.append(...keyed.map(([, body]) => body));
      });
    });
  }

  const filters = all("[data-filters]");
  const apply = (id) => {
    const table = document.getElementById(id);
    const of = filters.filter((filter) => filter.dataset.filters === id && filter.value !== "");
    let shown = 0;
    for (const body of table.tBodies) {
      const fits = of.every((filter) =>
        filter.dataset.by
          ? body.dataset[filter.dataset.by] === filter.value
          : body.textContent.toLowerCase().includes(filter.value.toLowerCase()));
      body.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    const count = document.querySelector(`[data-count-of="${id}"]`);
    if (count) count.textContent = `${shown} of ${table.tBodies.length} shown`;
  };
  for (const filter of filters) {
    filter.addEventListener("input", () => apply(filter.dataset.filters));
  }
  // A reload keeps what was typed; show what it says.
  new Set(filters.map((filter) => filter.dataset.filters)).forEach(apply);

  for (const button of all("[data-details]")) {
    button.addEventListener("click", () => {
      const open = button.dataset.details === "open";
      all("tbody:not([hidden]) details, main > details").forEach((part) => { part.open = open; });
    });
  }
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])").filter((part) => !part.closest("[hidden]"));
    opened.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((part) => { part.open = false; }));

  const theme = document.querySelector("[data-theme-button]");
  if (theme) {
    theme.hidden = false;
    theme.addEventListener("click", () => {
      const root = document.documentElement;
      const dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    });
  }
  all("[data-needs-script]").forEach((part) => { part.hidden = false; });
})();
