package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/internal/litetest"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/sqlite"
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
	engineTook600(t, store)
	const took = "engine temporal took at most 600 runs a minute (10/s) in the last day"
	for _, c := range []struct{ queue, pair, want string }{
		{"payments", "rate=500/s", "the rate would be 500/s, 50 times what its engine took lately: " + took},
		{"payments", "rate=20/s", "the rate would be 20/s, 2 times what its engine took lately: " + took},
		{"payments", "rate=0", "the queue would have no rate any more; its " + took},
		{"payments", "rate=19/s", ""},
		{"payments", "rate=1/s", ""},
		{"payments", "lease=2m", ""},
		{"new", "rate=500/s", ""}, // no statistics count a start of this queue
		{"mail", "rate=500/s", ""},
		{"nowhere", "rate=500/s", ""},
	} {
		if got, err := cli.WarnOfRate(t.Context(), store, client, c.queue, c.pair); err != nil || got != c.want {
			t.Errorf("%s %s: %q, %v; want %q", c.queue, c.pair, got, err, c.want)
		}
	}
}

// engineTook600 stores that the engine of queue payments took 600 runs in its busiest minute.
func engineTook600(t *testing.T, store stat.Store) {
	t.Helper()
	slot := time.Now().Add(-time.Hour).Truncate(stat.Minute)
	for i, runs := range []int64{300, 300, 50} {
		s := stat.Stat{Queue: "payments", Every: stat.Fine, At: slot.Add(time.Duration(i) * stat.Fine), Counts: stat.Counts{Dispatched: runs}}
		if i == 2 {
			s.At = slot.Add(stat.Minute)
		}
		if err := store.AddStats(t.Context(), "test", []stat.Stat{s}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommandsThatRaiseARateBeyondWhatTheEngineTookAreRefusedWithoutYes runs the commands that change the rate of a
// queue, without a terminal in which they could ask.
func TestCommandsThatRaiseARateBeyondWhatTheEngineTookAreRefusedWithoutYes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	litetest.MakeFile(t, path)
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	settings := sluice.DefaultSettings()
	settings.Rate, settings.Engine = sluice.RatePerSecond(10), "temporal"
	if _, err := sluice.NewClient(store, sluice.ClientOptions{}).EnsureQueue(t.Context(), "payments", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	engineTook600(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	run := func(line string) (string, int) {
		return cli.Run(t.Context(), append(strings.Fields(line), "--db", "sqlite:"+path)...)
	}
	const window = " --from 16:00 --to 18:00 --tz UTC"
	const took, lifted = "50 times what its engine took lately", "the queue would have no rate any more"
	for _, c := range []struct{ line, warning string }{
		{"settings set payments rate=500/s", took},
		{"settings set payments rate=0", lifted},
		{"settings set payments rate=500/s --revert-in 1h", took},
		{"settings schedule payments rate=500/s" + window, took},
		{"settings schedule payments rate=0" + window, lifted},
	} {
		before, _ := run("settings history payments -o json")
		if printed, code := run(c.line); code != 4 || !strings.Contains(printed, c.warning) || !strings.Contains(printed, "nothing was changed") {
			t.Errorf("%s: exit code %d:\n%s", c.line, code, printed)
		}
		if after, _ := run("settings history payments -o json"); after != before {
			t.Errorf("%s: it was refused, and changed\n%s\nto\n%s", c.line, before, after)
		}
	}
	if printed, code := run("settings set payments rate="); code != 2 {
		t.Errorf("an empty rate: exit code %d, want it refused:\n%s", code, printed)
	}
	for _, line := range []string{"settings schedule payments rate=500/s --yes" + window, "settings set payments rate=500/s --yes"} {
		if printed, code := run(line); code != 0 || !strings.Contains(printed, "warning: the rate would be 500/s, "+took) {
			t.Errorf("%s: exit code %d:\n%s", line, code, printed)
		}
	}
	if printed, code := run("settings set payments rate=400/s"); code != 0 || strings.Contains(printed, "warning") {
		t.Errorf("a lower rate: exit code %d:\n%s", code, printed)
	}
}
