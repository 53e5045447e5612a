package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/cmd/cli"
)

// TestDoctorNoticesAWindowThatNobodyCarriesOut has a window that should have opened. This happens when upkeep's machine
// does not know the time zone, and this machine does.
func TestDoctorNoticesAWindowThatNobodyCarriesOut(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 10, 14, 30, 0, 0, time.UTC)
	change := changes.Change{
		ID: 7, Window: &changes.Window{From: "16:00", To: "18:00", Zone: "Europe/Berlin"}, Set: map[string]string{"rate": "200/s"},
		MadeBy: "ada", MadeAt: now.AddDate(0, -1, 0),
	}
	for name, c := range map[string]struct {
		now             time.Time
		open, tended    bool
		what, why, mend string
	}{
		"in time":               {now: now, open: true, tended: true},
		"a moment ago":          {now: now.Add(-29*time.Minute - 40*time.Second), tended: true},
		"nobody does upkeep":    {now: now, what: "due since 2026-07-10T14:00:00Z", mend: "sluice upkeep"},
		"although upkeep runs":  {now, false, true, "payments: scheduled change 7, rate=200/s from 16:00 to 18:00 Europe/Berlin: due since 2026-07-10T14:00:00Z", "may not know the time zone Europe/Berlin", "sluice settings unschedule payments 7"},
		"nobody has closed it":  {now.Add(3 * time.Hour), true, true, "due since 2026-07-10T16:00:00Z", "although upkeep runs", "`scheduled change not applied`"},
		"the next day it waits": {now: now.Add(20 * time.Hour), tended: true},
	} {
		change.Open = c.open
		found := cli.ExamineScheduled(sluice.Queue{Name: "payments", Now: c.now, Scheduled: scheduledText(t, change)}, c.tended)
		if c.what == "" {
			if len(found) != 0 {
				t.Errorf("%s: found %v, want nothing", name, found)
			}
			continue
		}
		if len(found) != 1 || !strings.Contains(found[0].What, c.what) || !strings.Contains(found[0].Why, c.why) || !strings.Contains(found[0].Repair, c.mend) {
			t.Errorf("%s: %+v, want %+v", name, found, c)
		}
	}
}

// scheduledText encodes scheduled changes as a queue stores them.
func scheduledText(t *testing.T, scheduled ...changes.Change) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(scheduled)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestScheduledChangesThatCannotBeReadAreShownAsUnknown(t *testing.T) {
	t.Parallel()
	queue := sluice.Queue{Name: "payments", Scheduled: json.RawMessage(`[{"id": "seven"}]`)}
	found := cli.ExamineScheduled(queue, true)
	if len(found) != 1 || !strings.Contains(found[0].What, `the scheduled changes of queue "payments" are not applied`) || found[0].Repair != "sluice settings undo payments" {
		t.Errorf("the doctor found %+v", found)
	}
	if what, next, note := cli.ScheduledTexts(queue); what != "-" || next != "-" || strings.Contains(note, "0001") || !strings.HasPrefix(note, "warning: the scheduled changes of queue") {
		t.Errorf("they are shown as %q, %q and %q", what, next, note)
	}
}
