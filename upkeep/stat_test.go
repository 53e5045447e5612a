package upkeep_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/upkeep"
)

// count adds what a process counted in a slot.
func (f *farm) count(at time.Time) {
	f.Helper()
	s := sluice.Stat{Queue: "payments", At: at.Truncate(sluice.StatFine), Every: sluice.StatFine, Counts: sluice.StatCounts{Enqueued: 1}}
	if err := f.store.AddStats(f.Context(), "host:1:x", []sluice.Stat{s}); err != nil {
		f.Fatal(err)
	}
}

// slots counts slots of a kind, and what was enqueued in them.
func (f *farm) slots(every time.Duration) (slots int, enqueued int64) {
	f.Helper()
	stats, err := f.store.Stats(f.Context(), sluice.StatFilter{Every: every, To: time.Now().Add(time.Hour), Limit: 10_000})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range stats {
		enqueued += s.Counts.Enqueued
	}
	return len(stats), enqueued
}

func TestStatisticsAreAddedUpAndForgotten(t *testing.T) {
	inFarm(t, func(f *farm) {
		stop := f.run(f.store)
		for range 60 {
			f.count(time.Now())
			time.Sleep(10 * time.Second)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n, err := f.store.FoldStats(t.Context(), 100); n != 0 || err != nil {
			t.Errorf("upkeep left %d rows, %v", n, err)
		}
		for every, want := range map[time.Duration]int{sluice.StatFine: 60, sluice.StatMinute: 10, sluice.StatHour: 1} {
			if slots, enqueued := f.slots(every); slots != want || enqueued != 60 {
				t.Errorf("%d slots of %s with %d, want %d with 60", slots, every, enqueued, want)
			}
		}
		time.Sleep(2*time.Hour + time.Minute)
		synctest.Wait()
		if slots, _ := f.slots(sluice.StatFine); slots != 0 {
			t.Errorf("%d slots of %s are left after two hours", slots, sluice.StatFine)
		}
		if slots, _ := f.slots(sluice.StatMinute); slots != 10 {
			t.Errorf("%d minutes are left after two hours", slots)
		}
		stop()
	})
}

func TestOnceAddsUpAllThatIsOver(t *testing.T) {
	inFarm(t, func(f *farm) {
		for range 700 {
			f.count(time.Now())
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Minute)
		if _, err := upkeep.New(f.store, upkeep.Options{Logger: quiet}).Once(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if n, err := f.store.FoldStats(t.Context(), 100); n != 0 || err != nil {
			t.Errorf("it left %d rows, %v", n, err)
		}
	})
}
