// Package scrubbed keeps secrets and personal data out of stores and logs. Components that run,
// dispatch, follow and forward jobs pass every text through it. The texts go to the store or the
// log, or come from an engine.
//
// Begin with [Store], [Engines] and [Logger], which wrap a store, engines and a logger. [Text] is
// the function that cleans a text.
//
// Read next: package scrub for the rules, which an application can replace.
package scrubbed

import (
	"log/slog"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/scrub"
)

const (
	// most is how much of a text is searched, in bytes. A text made only of words of the rules
	// takes 0.4 ms per kilobyte, and at most half as much is stored.
	most = 2 * sluice.MaxErrorBytes
	// border is how much is dropped on both sides of a cut, because half a secret is not
	// recognised. A PEM key of 4,096 bits is shorter.
	border = most / 4
	cut    = "\n… cut …\n"
	// unclean replaces a text that the function could not clean.
	unclean = "[removed: the function that scrubs panicked at this text]"
)

// byDefault is the shared default function.
var byDefault = remembered(bounded(scrub.Text))

// Text returns the function that removes secrets from texts: clean, or scrub.Text if clean is nil.
// Of a long text, only the beginning and the end remain.
func Text(clean func(string) string) func(string) string {
	if clean == nil {
		return byDefault
	}
	return remembered(bounded(caught(clean)))
}

// caught returns clean without its panics: it runs beside the work of others. What it says in a panic may be a secret.
func caught(clean func(string) string) func(string) string {
	return func(text string) (cleaned string) {
		defer func() {
			if recover() != nil {
				cleaned = unclean
			}
		}()
		return clean(text)
	}
}

func bounded(clean func(string) string) func(string) string {
	return func(text string) string {
		if len(text) <= most {
			return clean(text)
		}
		begin, end := clean(text[:most/2]), clean(text[len(text)-most/2:])
		return begin[:max(0, len(begin)-border)] + cut + end[min(border, len(end)):]
	}
}

// keys are the attributes of log lines that may quote anything: errors, reasons of people, labels
// of jobs and texts of alert rules.
var keys = []string{"error", "Error", "reason", "labels", "message"}

// Logger returns a logger that scrubs the attributes that may quote anything. A logger that already
// scrubs stays as it is. A nil logger is [slog.Default].
func Logger(logger *slog.Logger, clean func(string) string) *slog.Logger {
	if logger == nil {
		logger = slog.Default()
	}
	if scrub.Scrubs(logger.Handler()) {
		return logger
	}
	return slog.New(scrub.NewHandler(logger.Handler(), Text(clean), keys...))
}
