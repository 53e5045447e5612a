package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

func TestJobTellsWhenItsRunWasDispatched(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)
	for text, job := range map[string]sluice.Job{
		"\ndispatched    2026-11-21T16:00:00Z ": {State: sluice.StateDispatched, DispatchedAt: at},
		"":                                      {State: sluice.StateQueued},
	} {
		show := func(output string) {
			t.Helper()
			out.Reset()
			a, detail := &app{stdout: &out, output: output}, jobDetail{Job: job}
			if err := a.printOne(detail, func() error { return a.printDetail(detail) }); err != nil {
				t.Fatal(err)
			}
		}
		show("table")
		if said := strings.Contains(out.String(), "\ndispatched "); said != (text != "") || !strings.Contains(out.String(), text) {
			t.Errorf("the job is shown as\n%s\nwant %q in it", out.String(), text)
		}
		show("json")
		var printed map[string]any
		if err := json.Unmarshal(out.Bytes(), &printed); err != nil {
			t.Fatal(err)
		}
		var want any
		if text != "" {
			want = "2026-11-21T16:00:00Z"
		}
		if got := printed["dispatched_at"]; got != want {
			t.Errorf("as JSON, dispatched_at of a %s job is %v, want %v:\n%s", job.State, got, want, out.String())
		}
	}
}
