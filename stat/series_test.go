package stat_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestOverSumsMoreSlotsThanAPage adds up 60 queues with 200 buckets each, which are more rows than a page of the store.
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

func TestOverSaysFromWhenFiguresAreKnown(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	now := time.Now().UTC()
	over := func(queue string) stat.Series {
		t.Helper()
		got, err := stat.Over(t.Context(), store, stat.Filter{Queues: []string{queue}, From: now.Add(-time.Hour), To: now})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := over("mail"); got.Counted || !got.Since.IsZero() {
		t.Errorf("without a count: known since %s", got.Since)
	}
	at := now.Add(-10 * time.Minute).Truncate(stat.Fine)
	if err := stat.Given(store).AddStats(t.Context(), "holder", []stat.Stat{{Queue: "mail", At: at, Every: stat.Fine, Counts: stat.Counts{Claimed: 1}}}); err != nil {
		t.Fatal(err)
	}
	if got := over("mail"); !got.Since.Equal(at.Truncate(got.Every)) {
		t.Errorf("known since %s, want the first slot at %s", got.Since, at)
	}
	for i, started := range []time.Duration{-20 * time.Minute, -2 * time.Hour} {
		h := presence.Holder{ID: fmt.Sprintf("host:%d:a", i), Role: presence.RoleWorker, Queues: []string{"mail"}, Started: now.Add(started)}
		if _, err := presence.Given(store).Heartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		got := over("mail")
		if want := h.Started; i == 0 && !got.Since.Equal(want) || i == 1 && !got.Since.Equal(got.From) {
			t.Errorf("known since %s, want the start of the process at %s, or the begin of the window", got.Since, want)
		}
	}
	if got := over("sms"); got.Counted {
		t.Errorf("another queue is known since %s", got.Since)
	}
}
