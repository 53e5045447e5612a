package leaktest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/scrubbed"
)

// sink accepts settlements and does nothing with them.
type sink struct{ sluice.Store }

// Unwrap returns the decorated store.
func (s sink) Unwrap() sluice.Store { return s.Store }

func (sink) Settle(context.Context, []sluice.Settlement) ([]error, error) { return nil, nil }

// BenchmarkSettle measures the cost of scrubbing a batch of 500 settlements. None, one in a hundred or all of them
// failed. Their errors are alike, or each has a text of its own.
func BenchmarkSettle(b *testing.B) {
	for _, failure := range []struct{ name, text string }{
		{"short errors", "dial tcp 10.0.0.5:443: connect: connection refused"},
		{"with a secret", fmt.Sprintf(secrets[2].quoted+": timeout", secrets[2].secret)},
		{"2 KB of stack", strings.Repeat("main.(*mailer).send(0xc000010250, {0x5d3a20, 0xc0000b4000})\n\t/srv/app/mail/send.go:118 +0x1c5\n", 20)},
		{"8 KB of prose", strings.Repeat("The server answered late, so we made the pool larger. ", 152)},
	} {
		for _, c := range []struct {
			failed int
			apart  bool
		}{{0, false}, {5, true}, {500, false}, {500, true}} {
			b.Run(fmt.Sprintf("%s/%d of 500, apart %v", failure.name, c.failed, c.apart), func(b *testing.B) {
				store := scrubbed.Store(sink{}, nil)
				batch := make([]sluice.Settlement, 500)
				n := 0
				for b.Loop() {
					for i := range c.failed {
						batch[i].Error = failure.text
						if c.apart {
							n++
							batch[i].Error += fmt.Sprint(" in attempt ", n)
						}
					}
					_, _ = store.Settle(b.Context(), batch)
				}
			})
		}
	}
}
