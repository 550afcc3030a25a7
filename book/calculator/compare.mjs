// Two answers side by side: the one that was kept, and the one that the page shows now.

const find = (id) => document.getElementById(id);

function cells(head, ...texts) {
  const line = document.createElement("tr");
  const first = document.createElement("th");
  first.setAttribute("scope", "row");
  first.textContent = head;
  line.append(first);
  for (const text of texts) {
    const cell = document.createElement("td");
    cell.textContent = text;
    line.append(cell);
  }
  return line;
}

// order: of the terms; say: English -> the page's language; sized: bytes -> text. What comes back
// is told each answer that the page shows.
export function comparer(order, say, sized) {
  let kept = null;
  let now = null;

  const signed = (more) => (more === 0 ? "0" : `${more > 0 ? "+" : "−"}${sized(Math.abs(more))}`);
  const of = (found, term) => found.rows.find((row) => row.term === term)?.bytes ?? 0;
  const line = (name, before, after) =>
    cells(name, before ? sized(before) : "0", after ? sized(after) : "0", signed(after - before));

  function draw() {
    find("calc-compare").hidden = !kept;
    if (!kept) return;
    find("calc-kept").textContent = say(kept.heading);
    find("calc-kept-verdict").textContent = say(kept.verdict);
    find("calc-now").textContent = say(now.heading);
    find("calc-now-verdict").textContent = say(now.verdict);
    const terms = order.filter((term) => of(kept, term) || of(now, term));
    const lines = terms.map((term) => line(say(term), of(kept, term), of(now, term)));
    find("calc-compared").replaceChildren(...lines);
    find("calc-compared-total").replaceChildren(line(say("total"), kept.total, now.total));
  }

  find("calc-keep").addEventListener("click", () => {
    kept = now;
    draw();
    find("calc-compare").focus();
  });
  find("calc-forget").addEventListener("click", () => {
    kept = null;
    draw();
    find("calc-keep").focus();
  });
  return (found) => {
    now = found;
    draw();
  };
}
