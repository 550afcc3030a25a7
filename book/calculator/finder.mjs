// Finds a model in the list: by a part of its name, by its size, or by its name on a hub.

const find = (id) => document.getElementById(id);
const SIZE = /^\d+(\.\d+)?\s*[bm]$/i;
const LONGEST = 200; // characters of a name or an address
const PAUSE = 300; // milliseconds without a key before more than the list is asked

// Whether a text in the place of a config names a model instead: a size, owner/name, an address.
export function names(text) {
  const word = text.trim();
  return word.length <= LONGEST && (SIZE.test(word) || /^[^\s{["]+\/[^\s{["]+$/.test(word));
}

// named: (text, use) -> what the engine takes it for; use: train or serve, as chosen now; say:
// English -> the page's language; take: sets controls. What comes back: `look`, which shows what a
// text means, and `whole`, which shows the whole list again.
export function finder({ named, use, say, take }) {
  const field = find("calc-find");
  const list = find("calc-model");
  const found = find("calc-found");
  const whole = [...list.children];
  const options = [...list.options].filter((one) => "hub" in one.dataset);
  let turn = 0;
  let waiting = 0;

  // The list with these options alone, and with the one that is chosen.
  function only(shown) {
    const chosen = list.value;
    const kept = (one) => shown === null || shown.has(one.value) || one.value === chosen;
    list.replaceChildren(
      ...whole.map((group) => {
        if (group.tagName !== "OPTGROUP") return group;
        const own = options.filter((one) => one.dataset.family === group.label && kept(one));
        group.replaceChildren(...own);
        return group;
      }).filter((group) => group.tagName !== "OPTGROUP" || group.children.length),
    );
    list.value = chosen;
  }
  for (const one of options) one.dataset.family = one.parentNode.label;

  function matching(text) {
    const words = text.toLowerCase().split(/\s+/);
    const of = (one) => `${one.value} ${one.dataset.hub} ${one.dataset.family}`;
    return options.filter((one) => words.every((word) => of(one).includes(word)));
  }

  function tell(place, told, address) {
    place.replaceChildren(say(told));
    if (!address) return;
    const link = document.createElement("a");
    link.href = address;
    link.textContent = address;
    place.append(" ", link);
  }

  // What a text means, shown in `place`; the model that it settles is chosen.
  async function look(text, place) {
    const mine = ++turn;
    const told = await named(text.trim().slice(0, LONGEST), use());
    if (mine !== turn) return;
    tell(place, told.line, told.address);
    if (told.model) {
      only(null);
      take({ model: told.model, ...told.sets });
    } else if (told.names) only(new Set(told.names));
  }

  field.addEventListener("input", () => {
    turn += 1;
    clearTimeout(waiting);
    const text = field.value.trim();
    found.replaceChildren();
    if (!text) return only(null);
    const matches = matching(text);
    if (matches.length && !SIZE.test(text)) {
      only(new Set(matches.map((one) => one.value)));
      if (matches.length === 1) waiting = setTimeout(() => take({ model: matches[0].value }), PAUSE);
      const sizes = { count: String(matches.length), all: String(options.length) };
      return tell(found, [field.dataset.matches, sizes]);
    }
    if (SIZE.test(text) || text.includes("/"))
      waiting = setTimeout(() => look(text, found), PAUSE);
    else tell(found, [field.dataset.matches, { count: "0", all: String(options.length) }]);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    clearTimeout(waiting);
    const text = field.value.trim();
    const matches = SIZE.test(text) || !text ? [] : matching(text);
    if (matches.length === 1) {
      take({ model: matches[0].value });
      list.focus();
    } else if (text && !matches.length) look(text, found);
    else if (text && matches.some((one) => one.value === text.toLowerCase()))
      take({ model: text.toLowerCase() });
  });
  return {
    look,
    whole() {
      turn += 1;
      field.value = "";
      found.replaceChildren();
      only(null);
    },
  };
}
