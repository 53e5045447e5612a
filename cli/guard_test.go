package cli_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cli"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestARateBeyondWhatTheEngineTookIsAskedAbout changes the rate of a queue whose engine took 600 runs in its busiest minute.
func TestARateBeyondWhatTheEngineTookIsAskedAbout(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for name, engine := range map[string]string{"payments": "temporal", "new": "temporal", "mail": ""} {
		settings := sluice.DefaultSettings()
		settings.Rate, settings.Engine = sluice.RatePerSecond(10), engine
		if _, err := client.EnsureQueue(t.Context(), name, settings, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	slot := time.Now().Add(-time.Hour).Truncate(sluice.StatMinute)
	for i, runs := range []int64{300, 300, 50} {
		stat := sluice.Stat{Queue: "payments", Every: sluice.StatFine, At: slot.Add(time.Duration(i) * sluice.StatFine), Counts: sluice.StatCounts{Dispatched: runs}}
		if i == 2 {
			stat.At = slot.Add(sluice.StatMinute)
		}
		if err := store.AddStats(t.Context(), "test", []sluice.Stat{stat}); err != nil {
			t.Fatal(err)
		}
	}
	const took = "engine temporal took at most 600 runs a minute (10/s) in the last day"
	for _, c := range []struct{ queue, pair, want string }{
		{"payments", "rate=500/s", "the rate would be 500/s, 50 times what its engine took lately: " + took},
		{"payments", "rate=20/s", "the rate would be 20/s, 2 times what its engine took lately: " + took},
		{"payments", "rate=0", "the queue would have no rate any more; its " + took},
		{"payments", "rate=19/s", ""},
		{"payments", "rate=1/s", ""},
		{"payments", "lease=2m", ""},
		{"new", "rate=500/s", ""}, // nobody counted any start
		{"mail", "rate=500/s", ""},
		{"nowhere", "rate=500/s", ""},
	} {
		if got, err := cli.WarnOfRate(t.Context(), client, c.queue, c.pair); err != nil || got != c.want {
			t.Errorf("%s %s: %q, %v; want %q", c.queue, c.pair, got, err, c.want)
		}
	}
}
