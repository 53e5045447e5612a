package demo_test

import (
	"os"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/demo"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// TestDemoHolds runs a small wave with a real server. At 10 per second, half of the payments have started when the
// server is killed. The dispatcher meets the outage with the other half.
func TestDemoHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a Temporal server")
	}
	t.Parallel()
	options := demo.Options{
		Payments: 100, DueIn: 4 * time.Second, Rate: sluice.RatePerSecond(10), Outage: 8 * time.Second, Namespace: "default", Folder: t.TempDir(),
		Limit: 10 * time.Minute, Out: t.Output(),
	}
	if _, err := temporaltest.Install(t.Context()); err != nil {
		if options.Temporal = os.Getenv(temporaltest.Env); options.Temporal == "" {
			t.Fatal(err)
		}
	}
	proof, err := demo.Run(t.Context(), options)
	if err != nil || !proof.Holds(options.Payments) {
		t.Errorf("the proof %+v, %v", proof, err)
	}
}

func TestProofThatLacksSomethingDoesNotHold(t *testing.T) {
	t.Parallel()
	good := demo.Proof{Payments: 2, Once: 2, Jobs: 2, Completed: 2, Claims: 2, Fullest: 2, Burst: 2, Rate: 1}
	if !good.Holds(2) {
		t.Errorf("%+v does not hold", good)
	}
	for name, spoil := range map[string]func(p *demo.Proof){
		"a payment fewer":        func(p *demo.Proof) { p.Payments-- },
		"one run twice":          func(p *demo.Proof) { p.Once, p.Twice = 1, 1 },
		"one too early":          func(p *demo.Proof) { p.Early++ },
		"a job without payment":  func(p *demo.Proof) { p.Jobs++ },
		"a job under way":        func(p *demo.Proof) { p.Completed-- },
		"an attempt burnt":       func(p *demo.Proof) { p.Attempts++ },
		"a claim too many":       func(p *demo.Proof) { p.Fullest = 2.5 },
		"an entry in the ledger": func(p *demo.Proof) { p.Misposted++ },
	} {
		bad := good
		if spoil(&bad); bad.Holds(2) {
			t.Errorf("%s: %+v holds", name, bad)
		}
	}
}
