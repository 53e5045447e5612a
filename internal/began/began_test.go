package began_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/began"
)

// standsStill returns a clock of a process that freezes. After a number of reads, the clock jumps ahead by while.
func standsStill(looks int, while time.Duration) func() time.Time {
	now := time.Now()
	return func() time.Time {
		if looks == 0 {
			now = now.Add(while)
		}
		looks--
		return now
	}
}

func TestAJobBeginsOnceItsProcessGoesOn(t *testing.T) {
	t.Parallel()
	for looks := range 3 { // the last read of the clock comes right before the handler
		token := sluice.NewToken()
		clock := standsStill(looks, time.Second)
		tally := began.Tally{Now: clock}
		tally.Claimed("payments", token, 2)
		tally.Begins(token)
		begins := clock()
		told := tally.Report("payments")
		if len(told) != 1 || told[0].Jobs != 1 {
			t.Fatalf("told %+v, want that one job began", told)
		}
		if ago := told[0].Ago - clock().Sub(begins); ago > 0 {
			t.Errorf("a process that stands still after %d looks at the clock begins its job %s after it noted that", looks, ago)
		}
	}
}

func TestNobodyIsToldOfAClaimThatIsNotKnown(t *testing.T) {
	t.Parallel()
	var tally began.Tally
	tally.Begins(sluice.NewToken())
	tally.Began(sluice.NewToken(), time.Now())
	if told := tally.Report(""); len(told) > 0 {
		t.Errorf("told %+v", told)
	}
}
