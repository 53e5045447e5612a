package sluice_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestRulesAreSetByQueueAndReset(t *testing.T) {
	t.Parallel()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	ada := sluice.Act{By: "ada", Reason: "we know"}
	set := func(name, queue string, change func(*sluice.AlertRule)) (sluice.AlertRule, sluice.AlertRule) {
		t.Helper()
		before, after, err := client.SetAlertRule(t.Context(), name, queue, ada, func(r *sluice.AlertRule) error { change(r); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return before, after
	}
	before, after := set("start-failures", "", func(r *sluice.AlertRule) { r.For = time.Hour })
	if before.For != 2*time.Minute || after.For != time.Hour || after.Version != 1 || after.Source != "D-62" || after.RateShare != 0.5 {
		t.Errorf("%+v became %+v", before, after)
	}
	_, own := set("start-failures", "payments", func(r *sluice.AlertRule) { r.Threshold = 3 })
	if own.For != time.Hour || own.Threshold != 3 || own.RateShare != 0 || own.Covers != sluice.CoversAll || own.Version != 1 {
		t.Errorf("the queue's own is %+v", own)
	}
	if before, again := set("start-failures", "payments", func(*sluice.AlertRule) {}); again != before || again.Version != 1 {
		t.Errorf("a change of nothing gives %+v", again)
	}
	book, err := client.Alerts(t.Context())
	if err != nil || len(book.Rules) != len(sluice.AlertPresets())+1 {
		t.Errorf("%d rules, %v", len(book.Rules), err)
	}
	for _, queue := range []string{"", "payments"} {
		if err := client.ResetAlertRule(t.Context(), "start-failures", queue, ada); err != nil {
			t.Error(err)
		}
	}
	if err := client.ResetAlertRule(t.Context(), "start-failures", "", ada); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("a second reset gives %v", err)
	}
	if _, _, err := client.SetAlertRule(t.Context(), "mine", "", ada, func(r *sluice.AlertRule) error { r.Metric = "nothing"; return nil }); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("an unknown metric gives %v", err)
	}
}

func TestSilencesNeedAReasonAWhileAndARule(t *testing.T) {
	t.Parallel()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	for name, c := range map[string]struct {
		silence sluice.Silence
		reason  string
		want    error
	}{
		"without a reason":    {sluice.Silence{During: time.Hour}, "", sluice.ErrInvalid},
		"without an end":      {sluice.Silence{}, "why not", sluice.ErrInvalid},
		"for too long":        {sluice.Silence{During: 100 * 24 * time.Hour}, "why not", sluice.ErrInvalid},
		"of an unknown rule":  {sluice.Silence{Rule: "none", During: time.Hour}, "why not", sluice.ErrNotFound},
		"of no queue's name":  {sluice.Silence{Queue: "a b", During: time.Hour}, "why not", sluice.ErrInvalid},
		"of all for a while":  {sluice.Silence{During: time.Hour}, "why not", nil},
		"of a preset's queue": {sluice.Silence{Rule: "clock", Queue: "mail", During: time.Hour}, "why not", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := client.Silence(t.Context(), c.silence, sluice.Act{By: "ada", Reason: c.reason}); !errors.Is(err, c.want) {
				t.Errorf("it gives %v, want %v", err, c.want)
			}
		})
	}
}
