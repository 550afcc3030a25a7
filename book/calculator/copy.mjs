// Hands the address over, and says so: beside the button, and on it for a moment.
const find = (id) => document.getElementById(id);
const MOMENT = 2500; // milliseconds
let waits = 0;

export async function copy(address) {
  const [button, link, told] = ["calc-copy", "calc-link", "calc-copied"].map(find);
  link.value = address;
  link.hidden = false;
  link.select();
  let done = false;
  try {
    await navigator.clipboard.writeText(address);
    done = true;
  } catch {
    done = document.execCommand("copy"); // where a page may not write: what is selected
  }
  button.dataset.usual ??= button.textContent;
  clearTimeout(waits);
  told.textContent = "";
  const words = done ? told.dataset.copied : told.dataset.select;
  requestAnimationFrame(() => {
    told.textContent = words;
  });
  if (done) button.textContent = button.dataset.copied;
  waits = setTimeout(() => {
    button.textContent = button.dataset.usual;
    told.textContent = "";
  }, MOMENT);
}
