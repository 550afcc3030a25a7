// The root page leads to the first of the reader's languages that the book has, else to its first.
const has = document.currentScript.dataset.languages.split(" ");
const same = (a, b) => a.toLowerCase() === b.toLowerCase();
const fits = (asked) => has.find((x) => same(x, asked)) || has.find((x) => same(x.split("-")[0], asked.split("-")[0]));
const found = (navigator.languages || []).map(fits).find(Boolean);
location.replace(`${found || has[0]}/intro.html`);
