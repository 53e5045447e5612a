package scrub_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/scrub"
)

// plainLog is a megabyte of lines without secrets, as services write them.
func plainLog() string {
	r := rand.New(rand.NewPCG(3, 4))
	messages := []string{"job done", "claimed jobs from the store", "request served", "task took longer than the disk allows", "lease extended", "settings read again"}
	var log strings.Builder
	for n := 0; log.Len() < 1<<20; n++ {
		at := time.Date(2026, 7, 1, 12, 0, 0, n*1e6, time.UTC).Format(time.RFC3339Nano)
		message, id := messages[r.IntN(len(messages))], uuid(r)
		switch n % 3 {
		case 0:
			fmt.Fprintf(&log, "time=%s level=INFO msg=%q queue=mail job=%s attempt=%d took=%dms\n", at, message, id, r.IntN(5), r.IntN(9999))
		case 1:
			fmt.Fprintf(&log, `{"time":"%s","level":"WARN","msg":"%s","path":"/v1/queues/mail/jobs","status":%d,"bytes":%d,"order":"order-%d"}`+"\n", at, message, 200+r.IntN(300), r.IntN(1e6), r.IntN(1e6))
		case 2:
			fmt.Fprintf(&log, "%s main.go:%d: worker %d/%d: %s, rate 500/5s, p99 %.3f s\n", at, r.IntN(900), r.IntN(9), 10, message, r.Float64())
		}
	}
	return log.String()
}

func TestPlainLogStaysAsItIs(t *testing.T) {
	t.Parallel()
	if _, found := scrub.New(scrub.Options{}).Scrub(plainLog()); len(found) > 0 {
		t.Errorf("in a plain log was found: %v", found)
	}
}

// BenchmarkScrub scrubs a plain log, 12 KB of prose, and code with secrets. It also scrubs the worst text, which has
// every word of every rule.
func BenchmarkScrub(b *testing.B) {
	prose := strings.Repeat("The server answered late, so we made the pool larger and looked at the figures again. ", 150)[:12<<10]
	var secrets strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for secrets.Len() < 12<<10 {
		for _, secret := range planted(r) {
			secrets.WriteString("cfg.Set(\"x\", 42) // see " + secret + "\n")
		}
	}
	for name, text := range map[string]string{"plain log": plainLog(), "prose": prose, "secrets": secrets.String()[:12<<10], "worst": strings.Repeat(strings.Join(scrub.Words(), " ")+" ", 12)[:12<<10]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				scrub.Text(text)
			}
		})
	}
}
