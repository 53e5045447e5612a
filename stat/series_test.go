package stat_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestOverSumsMoreSlotsThanAPage has 60 queues with 200 slots each: more than one page of the store.
func TestOverSumsMoreSlotsThanAPage(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	to := time.Now().UTC().Truncate(stat.Fine)
	const queues, slots = 60, 200
	for slot := range slots {
		var all []stat.Stat
		for queue := range queues {
			one := stat.Stat{Queue: fmt.Sprint("queue-", queue), At: to.Add(time.Duration(slot-slots) * stat.Fine), Every: stat.Fine, Counts: stat.Counts{Claimed: 1}}
			one.Wait.Add(time.Second)
			all = append(all, one)
		}
		if err := stat.Given(store).AddStats(t.Context(), "holder", all); err != nil {
			t.Fatal(err)
		}
	}
	got, err := stat.Over(t.Context(), store, stat.Filter{From: to.Add(-slots * stat.Fine), To: to, Every: stat.Fine})
	if err != nil || len(got.Slots) != slots || !got.Counted {
		t.Fatalf("%d slots, counted %t, %v", len(got.Slots), got.Counted, err)
	}
	for i, s := range got.Slots {
		if s.Counts.Claimed != queues || s.Wait.Count() != queues || !s.At.Equal(got.From.Add(time.Duration(i)*stat.Fine)) {
			t.Errorf("slot %d at %s has %d claims and %d waits", i, s.At, s.Counts.Claimed, s.Wait.Count())
		}
	}
	one, err := stat.Over(t.Context(), store, stat.Filter{Queues: []string{"queue-7"}, From: to.Add(-time.Hour), To: to, Every: stat.Fine})
	if err != nil || len(one.Slots) != slots || one.Slots[0].Counts.Claimed != 1 {
		t.Errorf("one queue: %d slots, %v", len(one.Slots), err)
	}
}

func TestOverTakesSlotsThatAreKeptSoLong(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	now := time.Now()
	for _, c := range []struct{ ago, window, want time.Duration }{
		{0, 15 * time.Minute, stat.Fine},
		{0, time.Hour, stat.Minute},
		{0, 24 * time.Hour, stat.Minute},
		{0, 7 * 24 * time.Hour, stat.Hour},
		{3 * time.Hour, 15 * time.Minute, stat.Minute},
		{3 * 24 * time.Hour, 15 * time.Minute, stat.Hour},
	} {
		got, err := stat.Over(t.Context(), store, stat.Filter{From: now.Add(-c.ago - c.window), To: now.Add(-c.ago)})
		if err != nil || got.Every != c.want || got.Counted {
			t.Errorf("%s until %s ago: slots of %s, counted %t, %v", c.window, c.ago, got.Every, got.Counted, err)
		}
	}
	for _, filter := range []stat.Filter{{From: now}, {From: now.Add(-100 * 24 * time.Hour)}, {Queues: []string{"no name"}}, {Every: time.Second}} {
		if _, err := stat.Over(t.Context(), store, filter); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%+v: %v, want an ErrInvalid", filter, err)
		}
	}
}
