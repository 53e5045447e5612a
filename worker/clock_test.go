package worker

import (
	"testing"
	"time"
	"unsafe"

	"github.com/sluice-queue/sluice"
)

// beforeSetting returns the instant as a program read it before somebody set the wall clock ahead.
func beforeSetting(at time.Time, ahead time.Duration) *time.Time {
	const nanoseconds = 30 // bits below the seconds in the first word of a time with both clocks
	*(*uint64)(unsafe.Pointer(&at)) -= uint64(ahead/time.Second) << nanoseconds
	return &at
}

func TestSettingTheWallClockEndsNoAttemptAndGivesNoOutcomeUp(t *testing.T) {
	now := time.Now()
	for _, ahead := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		before := beforeSetting(now, ahead)
		if read := time.Now().Round(0).Sub(before.Round(0)); (read - ahead).Abs() > time.Hour {
			t.Fatalf("the wall clock went on by %s, want %s", read, ahead)
		}
		r := &run{claim: &sluice.Claim{Job: sluice.Job{Timeout: time.Hour}}, queue: &sluice.Queue{}}
		r.begun.Store(before)
		if over, limited := r.overtime(); !limited || over > 0 || over < -time.Hour {
			t.Errorf("set by %s: %s over the timeout of an hour, want less than it", ahead, over)
		}
		w := &Worker{}
		w.settleBy.Store(beforeSetting(now.Add(time.Hour), ahead))
		if w.mayGiveUp(time.Now(), nil) {
			t.Errorf("set by %s: outcomes are given up an hour early", ahead)
		}
	}
}
