package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/stat"
)

// TestARuleShowsItsValueFromTheStatistics counts recoveries, of which the rule adds up 5 minutes. The queue's rate lowers its
// threshold from 1 to 0.2 a second.
func TestARuleShowsItsValueFromTheStatistics(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	if _, err := s.client.ChangeSettings(t.Context(), "mail", sluice.Act{By: "ann"}, func(q *sluice.Settings) error {
		rate, err := sluice.ParseRate("2/s")
		q.Rate = rate
		return err
	}); err != nil {
		t.Fatal(err)
	}
	s.has("/alerts/recoveries", "The value differs by queue", `<a href="/alerts/recoveries?queue=mail">mail</a>`, "-data-chart")
	s.count("mail", 18*time.Minute, stat.Counts{Enqueued: 1})
	s.count("mail", 10*time.Minute, stat.Counts{Recovered: 300})
	s.has("/alerts/recoveries?queue=mail&window=15m", "recovered_rate against the threshold, queue mail", "data-chart", "The last known value is 0; the alert fires when it is &gt; 0.2. Of 7", "known values, 30 are past the threshold", `href="?csv=value&amp;queue=mail&amp;window=15m"`, `href="/alerts/recoveries?queue=mail&amp;window=6h"`)
	rows := s.has("/alerts/recoveries?queue=mail&window=15m&csv=value", "time,value (per second),threshold (per second)")
	if past, below := strings.Count(rows, "Z,1,0.2\n"), strings.Count(rows, "Z,0,0.2\n"); past != 30 || below < 40 || below > 50 {
		t.Errorf("%d rows are past the threshold and %d below, want 30, and some 45:\n%s", past, below, rows)
	}
	s.level("mail", 5*time.Minute, stat.Level{Ready: 40, OldestSeconds: 700})
	s.has("/alerts/old-job?queue=mail", "oldest_age against the threshold, queue mail", "The last known value is 700; the alert fires when it is &gt; ")
	s.has("/alerts/slow-runs?queue=mail", "run_p95 against the threshold", "The last known value is 2", "Each value is of the jobs that ended in its slot; the rule looks back ")
}

// TestARuleWithoutHistoryShowsWhatTheAuditHas shows the values with which an alert fired and ended, and the last one.
func TestARuleWithoutHistoryShowsWhatTheAuditHas(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	s.has("/alerts/wal-size", "No value is known in this window", "The store keeps no history of this figure", "&#34;times&#34;:[1", "&#34;values&#34;:[null,null]", "&#34;values&#34;:[1024,1024]")
	rule := alert.Rule{Name: "wal-size", Metric: alert.MetricWAL, Op: ">", Threshold: 1 << 30}
	now := time.Now()
	var round alert.Evaluation
	for i, change := range []alert.Change{alert.Fires, alert.Resolves} {
		a := alert.Alert{Rule: rule.Name, State: alert.Firing, Value: []float64{2e9, 5e8}[i], Threshold: rule.Threshold, Severity: "warning", At: now}
		round.Entries = append(round.Entries, a.Message(rule, change, now).Entry("upkeep"))
	}
	round.Alerts = []alert.Alert{{Rule: rule.Name, State: alert.Firing, Value: 3e9, Threshold: rule.Threshold, Severity: "warning", Since: now, PendingSince: now, FiredAt: now, At: now.Add(time.Minute)}}
	if err := alert.Given(s.store).SaveAlerts(t.Context(), round); err != nil {
		t.Fatal(err)
	}
	s = openAgain(t, s)
	s.has("/alerts/wal-size", "wal_bytes against the threshold", "The last known value is 2 861; the alert fires when it is &gt; 1 024. Of 3 known values, 2 are past the threshold.", "-differs by queue")
	rows := s.has("/alerts/wal-size?csv=value", "time,value (MiB),threshold (MiB)")
	if !strings.Contains(rows, "Z,1907,1024\n") || !strings.Contains(rows, "Z,476.8,1024\n") || !strings.Contains(rows, "Z,2861,") {
		t.Errorf("the file lacks a value:\n%s", rows)
	}
}

// openAgain opens a console that has cached nothing.
func openAgain(t *testing.T, s *site) *site {
	t.Helper()
	return openOver(t, s.store, access.Caller{Name: "ann", Role: access.RoleViewer}, console.Options{}, httpapi.Options{})
}
