package cli

import (
	"testing"

	"github.com/sluice-queue/sluice/move"
)

func TestAMoveSaysWhatItCompared(t *testing.T) {
	t.Parallel()
	for want, report := range map[string]move.Report{
		"moved to x before; nothing is left to do":                    {Already: true},
		"moved to x, and compared, by an earlier run; it is open now": {Resumed: true},
		"moved to x in 0s; there was nothing to copy":                 {Tables: []move.TableReport{{Name: "jobs"}}},
		"moved to x in 0s, and compared: jobs 2":                      {Tables: []move.TableReport{{Name: "jobs", Rows: 2}, {Name: "keys"}}},
	} {
		if said := movedText(report, "x"); said != want {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
}
