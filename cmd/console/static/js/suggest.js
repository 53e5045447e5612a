// Suggests words for the term of a filter at which a person writes: names of fields, and their values. The browser shows
// them, so that screen readers tell them. A list suits a whole text alone, so each word comes with the terms before it.
const list = document.getElementById("words");
const all = list ? [...list.options].map((option) => option.value) : [];
const most = 50;

// suggest returns texts for a field that has a text.
export function suggest(text, words) {
  const quoted = (text.match(/"/g) || []).length % 2 === 1;
  const [, before, term] = text.match(quoted ? /^(.*\s|)([^\s"]*".*)$/ : /^(.*\s|)(\S*)$/);
  const [, not, name, others, value] = term.match(/^(-?)([^:]*:)?(.*,)?(.*)$/);
  const begun = ((name || "") + value).toLowerCase();
  const fit = words.filter((word) => word.toLowerCase().startsWith(begun) && !others?.split(",").includes(word.slice(word.indexOf(":") + 1)));
  return fit.slice(0, most).map((word) => before + not + (others ? name + others + word.slice(word.indexOf(":") + 1) : word));
}

document.addEventListener("input", (event) => {
  if (!list || event.target.list !== list) return;
  list.replaceChildren(...suggest(event.target.value, all).map((text) => new Option("", text)));
});
