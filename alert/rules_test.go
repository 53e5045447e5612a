package alert_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestRulesAreSetByQueueAndReset(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	ada := sluice.Act{By: "ada", Reason: "we know"}
	set := func(name, queue string, change func(*alert.Rule)) (alert.Rule, alert.Rule) {
		t.Helper()
		before, after, err := alert.SetRule(t.Context(), store, name, queue, ada, func(r *alert.Rule) error { change(r); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return before, after
	}
	before, after := set("start-failures", "", func(r *alert.Rule) { r.For = time.Hour })
	if before.For != 2*time.Minute || after.For != time.Hour || after.Version != 1 || after.Source != "D-62" || after.RateShare != 0.5 {
		t.Errorf("%+v became %+v", before, after)
	}
	_, own := set("start-failures", "payments", func(r *alert.Rule) { r.Threshold = 3 })
	if own.For != time.Hour || own.Threshold != 3 || own.RateShare != 0 || own.Covers != alert.CoversAll || own.Version != 1 {
		t.Errorf("the queue's own is %+v", own)
	}
	if before, again := set("start-failures", "payments", func(*alert.Rule) {}); again != before || again.Version != 1 {
		t.Errorf("a change of nothing gives %+v", again)
	}
	book, err := alert.Read(t.Context(), store)
	if err != nil || len(book.Rules) != len(alert.Presets())+1 {
		t.Errorf("%d rules, %v", len(book.Rules), err)
	}
	for _, queue := range []string{"", "payments"} {
		if err := alert.ResetRule(t.Context(), store, "start-failures", queue, ada); err != nil {
			t.Error(err)
		}
	}
	if err := alert.ResetRule(t.Context(), store, "start-failures", "", ada); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("a second reset gives %v", err)
	}
	if _, _, err := alert.SetRule(t.Context(), store, "dead-letters", "sluice.notify.hook", ada, func(r *alert.Rule) error { r.Threshold = 1; return nil }); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a rule of an internal queue gives %v", err)
	}
	if _, _, err := alert.SetRule(t.Context(), store, "mine", "", ada, func(r *alert.Rule) error { r.Metric = "nothing"; return nil }); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("an unknown metric gives %v", err)
	}
}

func TestSilencesNeedAReasonAWhileAndARule(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	for name, c := range map[string]struct {
		silence alert.Silence
		reason  string
		want    error
	}{
		"without a reason":    {alert.Silence{During: time.Hour}, "", sluice.ErrInvalid},
		"without an end":      {alert.Silence{}, "why not", sluice.ErrInvalid},
		"for too long":        {alert.Silence{During: 100 * 24 * time.Hour}, "why not", sluice.ErrInvalid},
		"of an unknown rule":  {alert.Silence{Rule: "none", During: time.Hour}, "why not", sluice.ErrNotFound},
		"of no queue's name":  {alert.Silence{Queue: "a b", During: time.Hour}, "why not", sluice.ErrInvalid},
		"of all for a while":  {alert.Silence{During: time.Hour}, "why not", nil},
		"of a preset's queue": {alert.Silence{Rule: "clock", Queue: "mail", During: time.Hour}, "why not", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := alert.StartSilence(t.Context(), store, c.silence, sluice.Act{By: "ada", Reason: c.reason}); !errors.Is(err, c.want) {
				t.Errorf("it gives %v, want %v", err, c.want)
			}
		})
	}
}

// TestSentencesOfPresetsHaveTheFiguresOfTheirRules changes figures of presets. A sentence of somebody's own stays.
func TestSentencesOfPresetsHaveTheFiguresOfTheirRules(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	for _, c := range []struct {
		rule, queue string
		change      func(*alert.Rule)
		want        string
	}{
		{"old-job", "", func(r *alert.Rule) { r.Threshold = 7200 }, "a job has been due for more than 2h and nobody has claimed it"},
		{"old-job", "mail", func(r *alert.Rule) { r.Threshold = 90 }, "a job has been due for more than 1m30s and nobody has claimed it"},
		{"stalled", "", func(r *alert.Rule) { r.Window = time.Hour }, "jobs are ready, nothing is in flight, and nothing was claimed for 1h"},
		{"paused", "mail", func(r *alert.Rule) { r.For = 2 * time.Hour }, "the queue has been paused for 2h while jobs are due"},
		{"success-rate", "", func(r *alert.Rule) { r.Threshold = 0.995 }, "less than 99.5 % of the jobs that ended in the last 1h were completed"},
		{"success-rate", "", func(r *alert.Rule) { r.Op = ">" }, "more than 99.5 % of the jobs that ended in the last 1h were completed"},
		{"wal-size", "", func(r *alert.Rule) { r.Threshold = 64 << 20 }, "the write-ahead log beside the file has more than 64 MiB"},
		{"connections", "", func(r *alert.Rule) { r.Summary = "too many" }, "too many"},
		{"connections", "", func(r *alert.Rule) { r.Threshold = 0.5 }, "too many"},
		{"slow-runs", "", func(r *alert.Rule) { r.Metric, r.Threshold = alert.MetricReady, 5 }, "slow-runs"},
	} {
		_, after, err := alert.SetRule(t.Context(), store, c.rule, c.queue, sluice.Act{By: "ada"}, func(r *alert.Rule) error { c.change(r); return nil })
		if err != nil || after.Summary != c.want {
			t.Errorf("%s/%s: %q, want %q (%v)", c.rule, c.queue, after.Summary, c.want, err)
		}
	}
	book, err := alert.Read(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range book.Rules {
		if strings.ContainsAny(r.Summary, "{}") {
			t.Errorf("%s: %q", r.Object(), r.Summary)
		}
		if r.Object() == "old-job" && r.Summary != "a job has been due for more than 2h and nobody has claimed it" {
			t.Errorf("stored: %q", r.Summary)
		}
	}
}
