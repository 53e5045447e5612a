// Package scrubbed is how those who run, dispatch, follow and forward jobs keep secrets and personal data out of what
// they store and log: every text passes here on its way to the store, to the log, and from an engine.
package scrubbed

import (
	"log/slog"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/scrub"
)

const (
	// most is how much of a text is looked through. A text that is made of nothing but the words of rules takes 0.4 ms per
	// kilobyte, and no more than half as much is stored.
	most = 2 * sluice.MaxErrorBytes
	// border is how much is left out on both sides of a cut, because half of a secret is not known for one. A key of 4,096
	// bits in PEM is shorter.
	border = most / 4
	cut    = "\n… cut …\n"
)

// byDefault is what all share who say nothing else.
var byDefault = remembered(bounded(scrub.Text))

// Text gives the function that removes secrets from texts: clean, or scrub.Text if that is nil. Of a long text only the
// beginning and the end are left.
func Text(clean func(string) string) func(string) string {
	if clean == nil {
		return byDefault
	}
	return remembered(bounded(clean))
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

// keys are the attributes of our lines that may quote anything: errors, the reasons that people give, the labels of jobs and
// the words of alert rules.
var keys = []string{"error", "Error", "reason", "labels", "message"}

// Logger gives a logger whose lines are scrubbed where they may quote anything. One that scrubs already stays as it is.
// Nil is slog.Default.
func Logger(logger *slog.Logger, clean func(string) string) *slog.Logger {
	if logger == nil {
		logger = slog.Default()
	}
	if scrub.Scrubs(logger.Handler()) {
		return logger
	}
	return slog.New(scrub.NewHandler(logger.Handler(), Text(clean), keys...))
}
