(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

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
          if (other && own.innerHTML !== other.innerHTML) {
            own.innerHTML = other.innerHTML;
            all("main details").forEach((part, i) => { part.open = open[i] ?? part.open; });
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
