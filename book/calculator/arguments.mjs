// Beside the controls: the arguments of the chosen framework or engine, as
// memlab.page.arguments names them, and what the default of a control is.

const FRACTION = "{fraction}"; // of a percentage, as an engine is told it

// form: the controls; table: arguments of each, and which of them an engine decides.
export function showArguments(form, { arguments: all, of_engines: ofEngines }) {
  const value = (name) => form.elements.namedItem(name).value;
  for (const [name, libraries] of Object.entries(all)) {
    const said = libraries[value(ofEngines.includes(name) ? "engine" : "loop")] ?? [];
    const codes = said.flatMap((text) => {
      const code = document.createElement("code");
      code.textContent = text.replace(FRACTION, (Number(value(name)) / 100).toFixed(2));
      return [code, " "];
    });
    document.getElementById(`calc-${name}-arguments`).replaceChildren(...codes.slice(0, -1));
  }
}

// own: control -> what to call its default; a control that it does not name has a default all the
// same, and nothing is known of it.
export function showDefaults(form, own, say) {
  for (const option of form.querySelectorAll('option[value="own"]')) {
    const { name } = option.parentElement;
    if (name !== "param_dtype") option.textContent = say(own[name] ?? "default");
  }
}
