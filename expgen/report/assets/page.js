"use strict";
// A click on a column header sorts by it, a second click reverses the order; the sort is stable.
function sortBy(table, column) {
  const head = table.tHead.rows[0].cells[column];
  const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const key = (row) => {
    const cell = row.cells[column];
    return "sort" in cell.dataset ? Number(cell.dataset.sort) : cell.textContent.trim();
  };
  const compare = (a, b) => {
    const isNumber = [typeof a === "number", typeof b === "number"];
    if (isNumber[0] && isNumber[1]) return sign * (a - b);
    if (isNumber[0] !== isNumber[1]) return isNumber[0] ? -1 : 1; // text sorts after numbers
    return sign * a.localeCompare(b, "en", { numeric: true });
  };
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [key(row), row]);
  rows.sort((a, b) => compare(a[0], b[0]));
  body.append(...rows.map(([, row]) => row));
}
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => sortBy(table, column));
  });
}
// A table that is wider than its parent becomes a list of cards.
function fitTables() {
  for (const table of document.querySelectorAll("table.sortable")) {
    table.classList.remove("cards");
    table.classList.toggle("cards", table.offsetWidth > table.parentElement.clientWidth);
  }
}
fitTables();
addEventListener("resize", fitTables);
document.addEventListener("toggle", (event) => event.target.matches("section > details") && fitTables(), true);
// A click on a number marks its score rows.
const filter = document.getElementById("filter");
const scoreRows = () => document.querySelectorAll("#table-rows tbody tr");
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-rows]");
  if (!link) return;
  event.preventDefault();
  if (!filter) return; // the page of a single table has no score rows
  document.getElementById("all-rows").open = true;
  filter.value = "";
  filterRows();
  const wanted = new Set(link.dataset.rows.split(" "));
  let first = null;
  for (const row of scoreRows()) {
    const marked = wanted.has(row.cells[0].textContent.trim());
    row.classList.toggle("marked", marked);
    if (marked && !first) first = row;
  }
  first?.scrollIntoView({ block: "center" });
});
function filterRows() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of scoreRows()) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
}
filter?.addEventListener("input", filterRows); // a report without scores has no filter
