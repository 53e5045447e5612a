package awaiting_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/awaiting"
)

func TestAJobIsTakenOnce(t *testing.T) {
	t.Parallel()
	var set awaiting.Set
	id := sluice.NewID()
	if set.Take(id) {
		t.Error("an empty set had the job")
	}
	set.Add([]sluice.ID{id}, time.Now())
	if set.Take(sluice.NewID()) || !set.Take(id) || set.Take(id) {
		t.Error("the set does not have the added job once")
	}
}

func TestAFullSetForgetsOldJobsAndTakesNoMore(t *testing.T) {
	t.Parallel()
	var set awaiting.Set
	now := time.Now()
	fill := func(now time.Time) []sluice.ID {
		ids := make([]sluice.ID, 100_000)
		for i := range ids {
			ids[i] = sluice.NewID()
		}
		set.Add(ids, now)
		return ids
	}
	first, second := fill(now), fill(now)
	third := fill(now.Add(awaiting.Time + time.Second))
	if set.Take(first[0]) || set.Take(second[0]) || !set.Take(third[0]) {
		t.Error("a full set keeps old jobs or takes new ones")
	}
}
