"use strict";
// A click on a column header sorts by it, a second click reverses the order; the sort is stable.
function sortBy(table, column) {
  const head = table.tHead.rows[0].cells[column];
  const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const isNumber = (row) => "sort" in row.cells[column].dataset;
  const number = (row) => Number(row.cells[column].dataset.sort);
  const text = (row) => row.cells[column].textContent.trim();
  const rows = [...table.tBodies[0].rows];
  const numbers = rows.filter(isNumber).sort((a, b) => sign * (number(a) - number(b)));
  const texts = rows.filter((row) => !isNumber(row));
  texts.sort((a, b) => sign * text(a).localeCompare(text(b), "en", { numeric: true }));
  table.tBodies[0].append(...numbers, ...texts); // text comes after numbers in both orders
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
  for (const row of scoreRows()) row.classList.toggle("marked", wanted.has(row.cells[0].textContent.trim()));
  document.querySelector("tr.marked")?.scrollIntoView({ block: "center" });
});
function filterRows() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of scoreRows()) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
}
filter?.addEventListener("input", filterRows); // a report without scores has no filter
