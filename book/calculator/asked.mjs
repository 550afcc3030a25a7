// What is asked after the verdict: how large, how long, for how many, and on which GPUs.

const find = (id) => document.getElementById(id);

function cell(tag, ...inside) {
  const made = document.createElement(tag);
  made.append(...inside);
  return made;
}

function button(text, act) {
  const made = cell("button", text);
  made.type = "button";
  made.className = "calc-apply";
  made.addEventListener("click", act);
  return made;
}

// ask: (state, what, wanted) -> the answer, or nothing where `wanted` has become false; state: of the
// controls; say: English -> the page's language; take: sets controls. What comes back has `drop`,
// for when the question is another one.
export function asker({ ask, state, say, take }) {
  const section = find("calc-asked");
  const buttons = [...section.querySelectorAll("[data-what]")];
  const line = find("calc-asked-line");
  const more = find("calc-asked-more");
  const gpus = find("calc-asked-gpus");
  let turn = 0;

  function clear() {
    turn += 1;
    for (const one of buttons) one.setAttribute("aria-pressed", "false");
    line.textContent = "";
    more.replaceChildren();
    gpus.hidden = true;
    gpus.querySelector("tbody").replaceChildren();
  }

  function use(sets) {
    take(sets);
    find("calc-verdict").focus();
  }

  async function press(one) {
    const again = one.getAttribute("aria-pressed") === "true";
    clear();
    if (again) return; // a second press puts the answer away
    const mine = turn;
    one.setAttribute("aria-pressed", "true");
    line.textContent = section.dataset.asking;
    const found = await ask(state(), one.dataset.what, () => mine === turn);
    if (found && mine === turn) show(found);
  }

  function show(found) {
    if (found.error) return void (line.textContent = say(found.error));
    line.textContent = say(found.line);
    if (found.then) more.append(say(found.then), " ");
    if (Object.keys(found.sets ?? {}).length)
      more.append(button(section.dataset.take, () => use(found.sets)), " ");
    if (found.replayed) {
      if (more.childNodes.length) more.append(cell("br"));
      more.append(say(found.replayed), " ", cell("code", found.command));
    }
    gpus.hidden = !found.rows;
    gpus.querySelector("tbody").replaceChildren(...(found.rows ?? []).map(row));
    const here = gpus.querySelector("[aria-current]");
    gpus.scrollTop = here ? here.offsetTop - gpus.clientHeight / 2 : 0;
  }

  function row([name, size, sign, verdict, margin, here]) {
    const head = cell("th", here ? name : button(name, () => use({ card: name })));
    head.scope = "row";
    if (here) head.append(` (${section.dataset.chosen})`);
    const made = cell("tr", head, cell("td", say(size)), cell("td", say(verdict)));
    made.append(cell("td", say(margin)));
    made.dataset.fits = sign;
    if (here) made.setAttribute("aria-current", "true");
    return made;
  }

  for (const one of buttons) one.addEventListener("click", () => press(one));
  return { drop: clear };
}
