// Package scrub removes secrets and personal data from text, before the text is stored, logged or sent on.
//
// Begin with [Text]; most callers need nothing else. [New] makes a [Scrubber] that keeps some families, and
// [NewHandler] scrubs log lines. [Scrubber.Scrub] also returns the findings. Scrubbing a scrubbed text changes
// nothing.
//
// The package's own rules find personal data, keys of a well-known form, and values assigned to a password. The
// rules of gitleaks (MIT, see gitleaks.LICENSE) find the keys of some 200 vendors. Scrub reads a text once for
// the words that each rule needs, and tries a rule only at such a word. The time is linear in the text: about
// 10 ms per megabyte of a log without secrets. Regular expressions are compiled on first use, so a short-lived
// process starts quickly.
//
// Rules find only known forms. A name, or a password in the middle of a sentence, needs a person who
// understands the text.
package scrub
