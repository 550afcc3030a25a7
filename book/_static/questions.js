// A chapter's question with its sliders: every answer was written down when the chapter was run, so
// a slider only chooses. Without this script, or in a folder, the answer to the default stands there.
addEventListener("DOMContentLoaded", async () => {
  "use strict";
  // What parts a label from its value in the language of the page.
  const colon = document.documentElement.lang.startsWith("zh") ? "：" : ": ";
  const places = document.querySelectorAll(".memlab-question");
  if (!places.length || !location.protocol.startsWith("http")) return;
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const name = location.pathname.split("/").pop().replace(/\.html$/, "");
  const read = async (file) => {
    const response = await fetch(new URL(`_static/answers/${file}.json`, root));
    return response.ok ? response.json() : null;
  };
  const names = await read("index");
  if (!names?.includes(name)) return;
  const kept = await read(name);
  for (const [number, place] of [...places].entries()) {
    const asked = place.querySelector("strong")?.textContent;
    const question = kept?.questions.find((each) => each.question === asked);
    if (question) bringToLife(place, question, number);
  }

  function bringToLife(place, { question, controls, answers }, number) {
    const head = document.createElement("p");
    head.append(Object.assign(document.createElement("strong"), { textContent: question }));
    const answer = document.createElement("div");
    answer.className = "memlab-answer";
    answer.setAttribute("aria-live", "polite");
    const sliders = controls.map((control, i) => {
      const line = document.createElement("div");
      line.className = "memlab-slider";
      const slider = Object.assign(document.createElement("input"), {
        type: "range", min: 0, max: control.values.length - 1, step: 1,
        id: `question-${number}-${i}`,
      });
      slider.value = control.default;
      // The label is the slider's alone: around an output too, it would name that one.
      const label = Object.assign(document.createElement("label"), {
        textContent: control.label, htmlFor: slider.id,
      });
      const said = document.createElement("output");
      said.htmlFor = slider.id;
      said.setAttribute("aria-live", "off"); // the slider itself says its value
      line.append(label, colon, said, slider);
      const tell = () => {
        said.textContent = control.values[slider.value];
        slider.setAttribute("aria-valuetext", control.values[slider.value]);
      };
      tell();
      slider.addEventListener("input", () => { tell(); show(); });
      return { line, slider };
    });
    function show() {
      let at = 0;
      sliders.forEach(({ slider }, i) => { at = at * controls[i].values.length + Number(slider.value); });
      // The site's own answers, as the chapter printed them; nothing that a reader gave is in them.
      const words = answers[at].replaceAll(/<th[^>]*><\/th>/g, "<td></td>"); // it heads nothing
      const read = new DOMParser().parseFromString(words, "text/html");
      answer.replaceChildren(...read.body.childNodes);
    }
    show();
    place.replaceChildren(head, ...sliders.map(({ line }) => line), answer);
    place.dataset.live = "yes";
  }
});
