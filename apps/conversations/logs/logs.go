// Package logs makes loggers that scrub what they are given: errors of libraries may quote anything.
package logs

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/sluice-queue/sluice/scrub"
)

// operators see the addresses of hosts in errors; whatever else is in them is removed.
var operators = scrub.New(scrub.Options{Without: []scrub.Family{scrub.IP}})

// Scrub removes from an error what operators must not see. It is for all that is logged, and stored of failures.
func Scrub(text string) string { return operators.Text(text) }

// New makes a logger that writes lines of text.
func New(out io.Writer) *slog.Logger { return Scrubbed(slog.New(slog.NewTextHandler(out, nil))) }

// Scrubbed gives a logger whose lines are scrubbed.
func Scrubbed(logger *slog.Logger) *slog.Logger {
	if scrub.Scrubs(logger.Handler()) {
		return logger
	}
	return slog.New(scrub.NewHandler(logger.Handler(), Scrub))
}

// Open makes a logger that adds to a file, which only its owner may read.
func Open(path string) (*slog.Logger, io.Closer, error) {
	file, err := File(path)
	if err != nil {
		return nil, nil, err
	}
	return New(file), file, nil
}

// File opens a file to add lines to, which only its owner may read.
func File(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return file, nil
}
