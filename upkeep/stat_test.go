package upkeep_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/upkeep"
)

// count adds the statistics of a process for one bucket.
func (f *farm) count(at time.Time) {
	f.Helper()
	s := stat.Stat{Queue: "payments", At: at.Truncate(stat.Fine), Every: stat.Fine, Counts: stat.Counts{Enqueued: 1}}
	if err := stat.Given(f.store).AddStats(f.Context(), "host:1:x", []stat.Stat{s}); err != nil {
		f.Fatal(err)
	}
}

// slots returns the number of buckets of one length, and how many jobs were enqueued in them.
func (f *farm) slots(every time.Duration) (slots int, enqueued int64) {
	f.Helper()
	stats, err := stat.Given(f.store).Stats(f.Context(), stat.Filter{Every: every, To: time.Now().Add(time.Hour), Limit: 10_000})
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
		if n, err := stat.Given(f.store).FoldStats(t.Context(), 100); n != 0 || err != nil {
			t.Errorf("upkeep left %d rows, %v", n, err)
		}
		for every, want := range map[time.Duration]int{stat.Fine: 60, stat.Minute: 10, stat.Hour: 1} {
			if slots, enqueued := f.slots(every); slots != want || enqueued != 60 {
				t.Errorf("%d slots of %s with %d, want %d with 60", slots, every, enqueued, want)
			}
		}
		time.Sleep(2*time.Hour + time.Minute)
		synctest.Wait()
		if slots, _ := f.slots(stat.Fine); slots != 0 {
			t.Errorf("%d slots of %s are left after two hours", slots, stat.Fine)
		}
		if slots, _ := f.slots(stat.Minute); slots != 10 {
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
		if n, err := stat.Given(f.store).FoldStats(t.Context(), 100); n != 0 || err != nil {
			t.Errorf("it left %d rows, %v", n, err)
		}
	})
}
