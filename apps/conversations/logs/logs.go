// Package logs makes loggers that scrub what they are given: errors of libraries may quote anything.
package logs

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/sluice-queue/sluice/scrub"
)

// operators see addresses of hosts; see the same in package pipeline.
var operators = scrub.New(scrub.Options{Without: []scrub.Family{scrub.IP}})

// New makes a logger that writes lines of text.
func New(out io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: clean}))
}

// Open makes a logger that adds to a file, which only its owner may read.
func Open(path string) (*slog.Logger, io.Closer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the log: %w", err)
	}
	return New(file), file, nil
}

// clean scrubs texts and all that is written as one. Instants, durations and figures have nothing to hide.
func clean(_ []string, a slog.Attr) slog.Attr {
	switch value := a.Value.Resolve(); value.Kind() {
	case slog.KindString, slog.KindAny:
		if _, level := value.Any().(slog.Level); !level {
			a.Value = slog.StringValue(operators.Text(value.String()))
		}
	}
	return a
}
