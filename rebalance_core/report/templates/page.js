"use strict";
(() => {
  const table = document.querySelector("table.sortable"), box = document.querySelector(".filter");
  if (!table) return;
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const words = { "=": "equal", "≈": "shared", "≠": "differs", "~": "unstable", "?": "unknown" };
  const texts = rows.map((row) => {
    const word = words[/[=≈≠~?]/.exec(row.cells[1].textContent)] ?? "";
    row.cells[1].title = word && `owners: ${word}`;
    return `${row.textContent} ${word}`.toLowerCase();
  });
  const input = box.querySelector("input"), status = box.querySelector("[role=status]");
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/);
    rows.forEach((row, at) => { row.hidden = !words.every((word) => texts[at].includes(word)); });
    status.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  };
  const unknown = -1, found = /^(?:(\d+)\sERROR)?\s?(?:(\d+)\sWARNING)?$/;
  const value = (cell, order) => {
    const text = cell.textContent.replaceAll(",", "").trim();
    if (text === "" || text === "–") return unknown;
    if (order) return order.indexOf(text.split(" ")[0]);
    const [, errors = 0, warnings = 0] = found.exec(text) ?? [];
    if (errors || warnings) return errors * 1e5 + Number(warnings);
    return isNaN(text) ? text : Number(text);
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
    : a === unknown ? -1 : b === unknown ? 1 : String(a).localeCompare(String(b), "en");
  const sort = (head, at) => {
    const ways = "most" in head.dataset ? ["descending", "ascending"] : ["ascending", "descending"];
    const way = head.ariaSort === ways[0] ? ways[1] : ways[0];
    const order = head.dataset.order?.split(" ");
    heads.forEach((one) => one.removeAttribute("aria-sort"));
    head.ariaSort = way;
    const keyed = rows.map((row) => [value(row.cells[at], order), row]);
    keyed.sort((a, b) => (way === "ascending" ? 1 : -1) * compare(a[0], b[0]));
    body.append(...keyed.map((pair) => pair[1]));
  };
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head, at));
    head.append(button);
  });
  const open = () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!body.contains(row)) return;
    if (row.hidden) { input.value = ""; filter(); }
    row.querySelectorAll("details").forEach((one) => { one.open = true; });
    row.scrollIntoView({ block: "center" });
  };
  input.addEventListener("input", filter);
  addEventListener("hashchange", open);
  box.hidden = false;
  filter();
  open();
})();
