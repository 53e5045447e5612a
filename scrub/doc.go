// Package scrub removes secrets and personal data from text: before it is stored, logged or sent on.
//
// [Text] is all that most callers need. Its rules are of two kinds: those of this package, for personal data, keys with a
// well-known form and whatever is assigned to a password, and those of gitleaks (MIT, see gitleaks.LICENSE) for the keys of
// some two hundred vendors. A text is read once for the words that each rule needs; only at such a word is the rule
// tried. The time grows with the text and no faster, whatever is in it: a log without secrets takes about 10 ms per
// megabyte. A regular expression is compiled when its word is met first, so that a process that scrubs one text starts
// quickly.
//
// [Scrubber.Scrub] of a scrubbed text changes nothing, for every text. To make that so, what stands between two marks is
// looked at by itself.
//
// Rules are rules: what has no form of its own, such as a name or a password in the middle of a sentence, is left to
// somebody who understands the text.
package scrub
