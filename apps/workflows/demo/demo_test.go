package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// TestDemo runs a small demo for real. The demo checks itself.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	var out strings.Builder
	options := Options{Workspaces: 7, Noisy: 50, Rounds: 1, Every: 2 * time.Second, Temporal: temporaltest.Address(t)}
	if err := Run(t.Context(), options, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"noisy", "FREE", "PRO", "is gone", "holds"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not tell %q:\n%s", want, out.String())
		}
	}
}
