package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

func TestJobTellsWhenItsRunWasDispatched(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{stdout: &out}
	at := time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)
	for text, job := range map[string]sluice.Job{
		"\ndispatched    2026-11-21T16:00:00Z ": {State: sluice.StateDispatched, DispatchedAt: at},
		"":                                      {State: sluice.StateQueued},
	} {
		out.Reset()
		if err := a.printDetail(jobDetail{Job: job}); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(out.String(), "\ndispatched "); said != (text != "") || !strings.Contains(out.String(), text) {
			t.Errorf("the job is shown as\n%s\nwant %q in it", out.String(), text)
		}
	}
}
