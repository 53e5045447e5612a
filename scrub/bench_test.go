package scrub_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/scrub"
)

// BenchmarkScrub takes 12 KB of prose, of code with secrets in it, and the worst text: one that has every word of every rule.
func BenchmarkScrub(b *testing.B) {
	prose := strings.Repeat("The server answered late, so we made the pool larger and looked at the figures again. ", 150)[:12<<10]
	var secrets strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for secrets.Len() < 12<<10 {
		for _, secret := range planted(r) {
			secrets.WriteString("cfg.Set(\"x\", 42) // see " + secret + "\n")
		}
	}
	for name, text := range map[string]string{"prose": prose, "secrets": secrets.String()[:12<<10], "worst": strings.Repeat(strings.Join(scrub.Words(), " ")+" ", 12)[:12<<10]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				scrub.Text(text)
			}
		})
	}
}
