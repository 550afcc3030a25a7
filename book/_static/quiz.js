// A chapter's quiz: a choice brings the sentence that belongs to it. Without this script, and on
// paper, all sentences stand in the fold below the question.
addEventListener("DOMContentLoaded", () => {
  "use strict";
  for (const quiz of document.querySelectorAll(".memlab-quiz")) {
    const first = new Map();
    const questions = [...quiz.querySelectorAll("fieldset")];
    const score = quiz.querySelector(".memlab-quiz-score");
    for (const question of questions)
      question.addEventListener("change", ({ target }) => {
        const found = question.querySelector(`[data-choice="${target.value}"]`);
        const said = question.querySelector(".memlab-quiz-said");
        said.dataset.kind = found.dataset.kind;
        said.replaceChildren(...found.cloneNode(true).childNodes);
        if (!first.has(question)) first.set(question, found.dataset.kind === "right");
        const right = [...first.values()].filter(Boolean).length;
        score.textContent = score.dataset.said.replace("{1}", right).replace("{2}", questions.length);
      });
  }
});
