package scrub_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/sluice-queue/sluice/scrub"
)

// broken is an error whose Error panics on a nil pointer.
type broken struct{ text string }

func (b *broken) Error() string { return b.text }

// secretive is a value that is written as a text.
type secretive struct{}

func (secretive) String() string { return "key sk_live_4eC39HqLyjWDarjtT1zdp7dc" }

func TestHandlerScrubsWhatIsLogged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys      []string
		log       func(l *slog.Logger)
		want, not string
	}{
		"a text":                {nil, func(l *slog.Logger) { l.Info("x", "what", "mail to ann@example.com") }, `what="mail to [redacted:email]"`, "ann@"},
		"an error":              {[]string{"reason"}, func(l *slog.Logger) { l.Info("x", "cause", errors.New("no user ann@example.com")) }, "[redacted:email]", "ann@"},
		"a wrapped error":       {[]string{"reason"}, func(l *slog.Logger) { l.Info("x", "cause", fmt.Errorf("a: %w", errors.New("ann@example.com"))) }, "[redacted:email]", "ann@"},
		"one of the keys":       {[]string{"reason"}, func(l *slog.Logger) { l.Info("x", "reason", "ann@example.com asked") }, "[redacted:email]", "ann@"},
		"another key":           {[]string{"reason"}, func(l *slog.Logger) { l.Info("x", "tenant", "ann@example.com") }, "tenant=ann@example.com", "redacted"},
		"in a group":            {nil, func(l *slog.Logger) { l.Info("x", slog.Group("g", "a", "ann@example.com", "n", 7)) }, "g.a=[redacted:email] g.n=7", "ann@"},
		"of all lines":          {nil, func(l *slog.Logger) { l.With("a", "ann@example.com").WithGroup("g").Info("x", "n", 7) }, "a=[redacted:email] g.n=7", "ann@"},
		"what is written":       {nil, func(l *slog.Logger) { l.Info("x", "a", secretive{}) }, "[redacted:vendor_key]", "sk_live_"},
		"figures":               {nil, func(l *slog.Logger) { l.Info("x", "n", 4242424242424242, "d", time.Minute, "l", slog.LevelWarn) }, "n=4242424242424242 d=1m0s l=WARN", "redacted"},
		"an error without text": {nil, func(l *slog.Logger) { l.Info("x", "error", (*broken)(nil)) }, "error=<nil>", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			c.log(slog.New(scrub.NewHandler(slog.NewTextHandler(&out, nil), scrub.Text, c.keys...)))
			if got := out.String(); !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("logged %s", got)
			}
		})
	}
}

func TestHandlerKeepsTheRulesOfHandlers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := scrub.NewHandler(slog.NewTextHandler(&out, nil), scrub.Nothing)
	if !scrub.Scrubs(h) || scrub.Scrubs(slog.NewTextHandler(&out, nil)) {
		t.Error("which handler scrubs is not told")
	}
	if err := slogtest.TestHandler(h, func() []map[string]any { return parsed(out.String()) }); err != nil {
		t.Error(err)
	}
}

// parsed reads lines of text into the maps that slogtest wants.
func parsed(text string) (all []map[string]any) {
	for line := range strings.Lines(text) {
		one := make(map[string]any)
		for _, pair := range strings.Fields(line) {
			name, value, _ := strings.Cut(pair, "=")
			at := one
			parts := strings.Split(name, ".")
			for _, group := range parts[:len(parts)-1] {
				inner, there := at[group].(map[string]any)
				if !there {
					inner = make(map[string]any)
					at[group] = inner
				}
				at = inner
			}
			at[parts[len(parts)-1]] = value
		}
		all = append(all, one)
	}
	return all
}
