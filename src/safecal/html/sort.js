"use strict";
// Tables sort by the header that is pressed. Without this script they stand in the order they were written in.
for (const hint of document.querySelectorAll(".press")) hint.hidden = false;
// A table that is wider than the screen says so.
const cut = (part) => part.toggleAttribute("data-cut", part.scrollWidth > part.clientWidth + 1);
const sizes = new ResizeObserver((entries) => entries.forEach((entry) => cut(entry.target)));
for (const part of document.querySelectorAll(".wide")) sizes.observe(part);
for (const table of document.querySelectorAll("table.keys")) {
  const body = table.tBodies[0];
  const headers = [...table.tHead.rows[0].cells];
  [...body.rows].forEach((row, place) => { row.place = place; });

  const keyOf = (row, column, by) => {
    const text = row.cells[column].textContent;
    if (by === "place") return row.place;
    return by === "number" ? parseFloat(text.replace("∞", "Infinity").replace(/\s/g, "")) : text;
  };

  const sort = (column, by, descending) => {
    const rows = [...body.rows].map((row) => [keyOf(row, column, by), row]);
    rows.sort(([a, first], [b, second]) => {
      const missing = (a !== a || a === "") - (b !== b || b === "");
      if (missing) return missing;
      const order = by === "text" ? a.localeCompare(b, "en", { numeric: true }) : a > b ? 1 : a < b ? -1 : 0;
      return (descending ? -order : order) || first.place - second.place;
    });
    body.append(...rows.map(([, row]) => row));
  };

  headers.forEach((header, column) => {
    const by = header.dataset.by;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const current = header.getAttribute("aria-sort");
      const descending = current ? current === "ascending" : by === "number";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sort(column, by, descending);
    });
  });
}
