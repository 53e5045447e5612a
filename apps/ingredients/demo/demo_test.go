package demo

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/apps/ingredients/matcher"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

// TestMain makes the test program the matcher in Go, too, which the demo starts as processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "match" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := matcher.Command(ctx, os.Args[2:], os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	pgtest.Main(m)
}

// TestDemoHolds runs a small demo with real matchers in all languages.
func TestDemoHolds(t *testing.T) {
	t.Parallel()
	if err := pgtest.Install(); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	options := Options{
		Mentions: 150, Duration: 3 * time.Second, Lease: 2 * time.Second, Work: 50 * time.Millisecond, DB: pgtest.NewDatabase(t),
		Folder: t.TempDir(), Matcher: []string{self, "match"}, Out: t.Output(),
	}
	proof, err := Run(context.WithoutCancel(t.Context()), options)
	if err != nil || !proof.Holds(options.Mentions) {
		t.Errorf("the proof %+v, %v", proof, err)
	}
}

func TestProofThatLacksSomethingDoesNotHold(t *testing.T) {
	t.Parallel()
	good := Proof{
		Mentions: 10, Jobs: 10, Completed: 8, Dead: 2, Once: 8, Garbage: 2, Confirmed: 1, Twins: 2, Python: 3, Node: 3, Go: 2,
		Killed: 3, Held: 4, Recovered: 4, P95Wait: 1, SlowestFifty: 2,
	}
	if !good.Holds(10) {
		t.Errorf("%+v does not hold", good)
	}
	for name, spoil := range map[string]func(p *Proof){
		"a mention fewer":          func(p *Proof) { p.Mentions-- },
		"a job too many":           func(p *Proof) { p.Jobs++ },
		"a job under way":          func(p *Proof) { p.Completed-- },
		"one decided twice":        func(p *Proof) { p.Once, p.Twice = 7, 1 },
		"one never":                func(p *Proof) { p.Never++ },
		"one that is undone":       func(p *Proof) { p.Undone++ },
		"a language idle":          func(p *Proof) { p.Node = 0 },
		"nobody killed":            func(p *Proof) { p.Killed, p.Held, p.Recovered = 0, 0, 0 },
		"killed with nothing":      func(p *Proof) { p.Held, p.Recovered = 0, 0 },
		"one not recovered":        func(p *Proof) { p.Recovered-- },
		"one dead without cause":   func(p *Proof) { p.Dead++ },
		"an attempt miscounted":    func(p *Proof) { p.Miscounted++ },
		"one without a reason":     func(p *Proof) { p.WithoutReason++ },
		"a job of another mind":    func(p *Proof) { p.Disagree++ },
		"one wrong":                func(p *Proof) { p.Wrong++ },
		"a twin not confirmed":     func(p *Proof) { p.Confirmed-- },
		"too long a wait":          func(p *Proof) { p.P95Wait = 300 },
		"fifty that took too long": func(p *Proof) { p.SlowestFifty = 301 },
	} {
		bad := good
		if spoil(&bad); bad.Holds(10) {
			t.Errorf("%s: %+v holds", name, bad)
		}
	}
}
