package upkeep_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/upkeep"
)

// storePlans stores scheduled changes without checks, as another program may that knows more time zones.
func (f *farm) storePlans(plans ...changes.Change) {
	f.Helper()
	q := f.queue()
	all := f.plans(q)
	for i, plan := range plans {
		plan.ID = 100*(q.Version+1) + int64(i)
		all = append(all, plan)
	}
	var err error
	if q.Scheduled, err = json.Marshal(all); err != nil {
		f.Fatal(err)
	}
	if _, err := f.store.SaveQueue(f.Context(), q, ada); err != nil {
		f.Fatal(err)
	}
}

// onMars returns a change whose time zone does not exist.
func onMars(zone string) changes.Change {
	return changes.Change{Window: &changes.Window{From: "00:00", To: "24:00", Zone: zone}, Set: map[string]string{"max_attempts": "9"}, MadeBy: "ada"}
}

func TestPlanThatCannotBeReadIsLoggedOnceAndKeepsNoneOfTheOthers(t *testing.T) {
	inFarmOn(t, "2030-01-01T12:00:00Z", func(f *farm) {
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(f.Context())
		ended := make(chan error, 1)
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		f.storePlans(onMars("Mars/Olympus"), onMars("Mars/Tharsis"))
		f.schedule("7", changes.Window{From: "12:00", To: "13:00", Zone: "UTC"})
		go func() { ended <- upkeep.New(f.store, upkeep.Options{Logger: logger}).Run(ctx) }()
		pass(10 * time.Second)
		f.attempts("in the window that can be read", 7)
		for _, zone := range []string{"Mars/Olympus", "Mars/Tharsis"} {
			if n := strings.Count(log.String(), zone); n != 1 {
				t.Errorf("%s was logged %d times, want once:\n%s", zone, n, &log)
			}
		}
		f.storePlans(onMars("Mars/Elysium"))
		pass(10 * time.Second)
		if n := strings.Count(log.String(), "scheduled change not applied"); n != 3 {
			t.Errorf("after another was added there are %d lines, want 3:\n%s", n, &log)
		}
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("there are %d lines in all, want 3:\n%s", n, &log)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestOnceTellsOfAPlanThatCannotBeReadEachTime(t *testing.T) {
	inFarmOn(t, "2030-01-01T12:00:00Z", func(f *farm) {
		f.storePlans(onMars("Mars/Olympus"))
		for range 2 {
			_, err := upkeep.New(f.store, upkeep.Options{Logger: quiet}).Once(f.Context(), true)
			var plan *changes.Error
			if !errors.As(err, &plan) || plan.Queue != "payments" || plan.Change == 0 || !errors.Is(err, sluice.ErrInvalid) {
				t.Errorf("Once returned %v, want a changes.Error", err)
			}
		}
	})
}
