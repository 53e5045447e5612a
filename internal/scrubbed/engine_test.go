package scrubbed_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/scrubbed"
	"github.com/sluice-queue/sluice/scrub"
)

// broken is an engine that panics in each of its methods, because it has none.
type broken struct {
	engine.Engine
	engine.Terminator
}

func TestAPanicOfAnEngineIsAnErrorOfEachCallAndRun(t *testing.T) {
	t.Parallel()
	ctx, target, refs := context.Background(), engine.Target{}, []string{"a", "b"}
	e := scrubbed.Engines(map[string]engine.Engine{"broken": broken{}}, scrub.Text)["broken"]
	_, outcomes := e.Outcomes(ctx, target, refs)
	_, ended := e.Ended(ctx, target, time.Time{}, nil)
	_, check := e.Check(ctx, target)
	for name, errs := range map[string][]error{
		"Start": e.Start(ctx, target, make([]engine.Run, 2)), "Cancel": e.Cancel(ctx, target, refs, "why"),
		"Terminate": e.(engine.Terminator).Terminate(ctx, target, refs, "why"),
		"Outcomes":  {outcomes, outcomes}, "Ended": {ended, ended}, "Check": {check, check},
	} {
		if len(errs) != 2 {
			t.Errorf("%s: %d errors, want one for each run", name, len(errs))
		}
		for _, err := range errs {
			if err == nil || !strings.HasPrefix(err.Error(), "the engine panicked: ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestATextAtWhichAFunctionPanicsIsRemoved(t *testing.T) {
	t.Parallel()
	clean := scrubbed.Text(func(text string) string {
		if text != "" {
			panic(text)
		}
		return text
	})
	if got := clean("token=s3cr3t"); got != "[removed: the function that scrubs panicked at this text]" {
		t.Errorf("got %q", got)
	}
}
