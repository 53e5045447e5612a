// Package scrub removes secrets and personal data from text: before it is stored, logged or sent on.
//
// [Text] is all that most callers need. Its rules are of two kinds: those of this package, for personal data, keys with a
// well-known form and whatever is assigned to a password, and those of gitleaks (MIT, see gitleaks.LICENSE) for the keys of
// some two hundred vendors. A text is read once for the words that each rule needs; only around such a word is its
// regular expression tried, and only then is it compiled. So a text that holds nothing costs a pass over its bytes, and a
// process that scrubs one text starts quickly.
//
// Rules are rules: what has no form of its own, such as a name or a password in the middle of a sentence, is left to
// somebody who understands the text.
package scrub
