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

// order: of the terms; say: English -> the page's language; sized: bytes -> text; changed: what to do
// when another answer is kept. Answers come with their states: { found, state }.
export function comparer(order, say, sized, changed) {
  let kept = null;
  let now = null;

  const signed = (more) => (more === 0 ? "0" : `${more > 0 ? "+" : "−"}${sized(Math.abs(more))}`);
  const of = (found, term) => found.rows.find((row) => row.term === term)?.bytes ?? 0;
  const line = (name, before, after) =>
    cells(name, before ? sized(before) : "0", after ? sized(after) : "0", signed(after - before));

  function draw() {
    find("calc-compare").hidden = !kept || !now;
    if (!kept || !now) return;
    const [before, after] = [kept.found, now.found];
    find("calc-kept").textContent = say(before.heading);
    find("calc-kept-verdict").textContent = say(before.verdict);
    find("calc-now").textContent = say(after.heading);
    find("calc-now-verdict").textContent = say(after.verdict);
    const terms = order.filter((term) => of(before, term) || of(after, term));
    const lines = terms.map((term) => line(say(term), of(before, term), of(after, term)));
    find("calc-compared").replaceChildren(...lines);
    find("calc-compared-total").replaceChildren(line(say("total"), before.total, after.total));
  }

  function keep(one) {
    kept = one;
    draw();
  }

  find("calc-keep").addEventListener("click", () => {
    keep(now);
    changed();
    find("calc-compare").focus();
  });
  find("calc-forget").addEventListener("click", () => {
    keep(null);
    changed();
    find("calc-keep").focus();
  });
  return {
    keep,
    // Those that no table has: { state, counts: what of it, kept: whether it is the one that was }.
    uncounted: () =>
      [now, kept && { ...kept, kept: true }]
        .filter((one) => one?.found.counts)
        .map(({ state, found, kept }) => ({ state, counts: found.counts, kept })),
    kept: () => kept?.state ?? null,
    tell(one) {
      now = one;
      draw();
    },
  };
}
