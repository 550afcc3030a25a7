// What the page has no tables of, counted by memlab itself: a button, and the worker behind it.
// Loaded when a question of that kind is asked; Python itself only when its button is pressed.

const PATIENCE = 4000; // milliseconds that a newer question waits for an older one

// place: the paragraph with the button, a line beside it, and the name of the wheel.
// What comes back counts a state, and hands over the answer; without advice first, which takes longer.
export function counter(place, say) {
  const button = place.querySelector("button");
  const line = place.querySelector("span");
  const price = line.textContent;
  let worker = null;
  let wanted = false; // once pressed, for all questions after it
  let last = null; // the question that stands: { id, state, take }
  let busy = null; // the one that the worker has: { id, since }
  let count = 0;

  function tell(text, offer) {
    line.textContent = text;
    button.hidden = !offer;
  }

  function begin() {
    const made = new Worker(new URL("cpython.mjs", import.meta.url), {
      type: "module",
      name: place.dataset.wheel,
    });
    made.addEventListener("message", ({ data }) => answered(data));
    made.addEventListener("error", (event) => broken(event.message ?? ""));
    return made;
  }

  function send(advise = false) {
    worker ??= begin();
    busy = { id: last.id, since: Date.now() };
    worker.postMessage({ id: last.id, state: last.state, advise });
  }

  function go() {
    tell(say("memlab is counting this step …"), false);
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
    if (!last) return undefined;
    if (id !== last.id) return send();
    if (found.refused ?? found.error) return tell(say(found.refused ?? found.error), false);
    place.hidden = true;
    last.take(found);
    if (found.fits || found.changes.length || found.never) return undefined;
    return send(true);
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

  return function ask(state, take) {
    last = state && { id: ++count, state, take };
    place.hidden = !state;
    if (!state) return;
    tell(price, true);
    if (wanted) go();
  };
}
