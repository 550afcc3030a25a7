// What the page has no tables of, counted by memlab itself: a button, and the worker behind it.
// Loaded when a question of that kind is asked; Python itself only when its button is pressed.

const PATIENCE = 4000; // milliseconds that a newer question waits for an older one

// What the button says: of a step that is in no table, of more cards for one that is, and of the
// answer that was kept to compare.
const OFFERS = {
  step: "Run memlab in the browser and compute this step",
  cards: "Run memlab in the browser and find on how many GPUs it fits",
  kept: "Run memlab in the browser and compute the saved step",
};

// place: the paragraph with the button, and a line beside it.
// What comes back counts questions, one after the other, and hands over each answer with its
// question; without advice first, which takes longer.
export function counter(place, say) {
  const button = place.querySelector("button");
  const line = place.querySelector("span");
  const price = line.textContent;
  let worker = null;
  let wanted = false; // once pressed, for all questions after it
  let left = []; // the questions that stand: { id, state, counts, kept }
  let hand = null; // takes an answer
  let busy = null; // the one that the worker has: { id, since }
  let count = 0;
  let stands = false; // whether a refusal is shown, which stays
  const beyond = new Set(); // states that were kept, and that the package refuses

  function tell(text, offer) {
    line.textContent = text;
    button.hidden = !offer;
  }

  function begin() {
    const made = new Worker(new URL("cpython.mjs", import.meta.url), { type: "module" });
    made.addEventListener("message", ({ data }) => answered(data));
    made.addEventListener("error", (event) => broken(event.message ?? ""));
    return made;
  }

  // The first question; what a table has is asked for its advice alone.
  function send(advise = left[0].counts === "cards") {
    worker ??= begin();
    const one = left[0];
    one.advised = advise || one.kept;
    busy = { id: one.id, since: Date.now() };
    worker.postMessage({ id: one.id, state: one.state, advise: advise && !one.kept });
  }

  function go() {
    tell(say("memlab is computing this step …"), false);
    if (busy && Date.now() - busy.since > PATIENCE) stop();
    if (!busy) send();
  }

  function stop() {
    worker?.terminate();
    worker = busy = null;
  }

  function answered({ id, found, broken: why }) {
    busy = null;
    if (why !== undefined) return broken(why);
    if (!left.length) return undefined;
    const [one] = left;
    if (id !== one.id) return send();
    const refused = found.refused ?? found.error;
    if (refused && one.kept) beyond.add(JSON.stringify(one.state));
    else if (refused) tell(say(refused), false);
    else hand({ state: one.state, kept: one.kept, found });
    stands ||= Boolean(refused) && !one.kept;
    if (!refused && !one.advised && !found.fits && !found.changes.length && !found.never) {
      place.hidden = true;
      return send(true);
    }
    left.shift();
    if (left.length) return send();
    place.hidden = !stands;
    return undefined;
  }

  function broken(why) {
    stop();
    wanted = false;
    tell(say(["Python did not start here: {problem}.", { problem: why || "?" }]), true);
  }

  button.addEventListener("click", () => {
    wanted = true;
    go();
  });

  return function ask(questions, take) {
    left = questions
      .filter(({ state, kept }) => !kept || !beyond.has(JSON.stringify(state)))
      .map((each) => ({ id: ++count, ...each }));
    hand = take;
    stands = false;
    place.hidden = !left.length;
    if (!left.length) return;
    button.textContent = say(OFFERS[left[0].kept ? "kept" : left[0].counts]);
    tell(price, true);
    if (wanted) go();
  };
}
