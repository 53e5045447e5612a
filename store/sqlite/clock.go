package sqlite

import (
	"context"
	_ "embed"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/clock.sql
var clockSQL string

//go:embed sql/clock_start.sql
var clockStartSQL string

//go:embed sql/clock_leases.sql
var clockLeasesSQL string

//go:embed sql/clock_started.sql
var clockStartedSQL string

//go:embed sql/clock_started_forget.sql
var clockStartedForgetSQL string

//go:embed sql/clock_permits.sql
var clockPermitsSQL string

// stepped is how far a test has set the wall clock, in microseconds.
var stepped atomic.Int64

// now is the store's clock in microseconds: the wall clock of the machine. Due times and stored
// times go by it.
func now() int64 { return time.Now().UnixMicro() + stepped.Load() }

// steadyClock is the clock for leases and rates. Setting the wall clock does not change it, and it
// stops while the machine sleeps. All processes since one start of the machine read the same steady
// time. Leases from before the last start are converted as if the wall clock had gone on.
type steadyClock struct {
	from int64 // the clock's value when since was 0, in microseconds
	// since reads the machine's clock each time. A process that read it once and then used its own
	// clock could be suspended between the two reads, and would be late for ever.
	since func() time.Duration
}

// at returns the steady time in microseconds.
func (c steadyClock) at() int64 { return c.from + c.since().Microseconds() }

// noticeable is the shift of the wall clock from which onWall corrects a lease's end.
const noticeable = time.Second

// onWall converts an instant of the steady clock to the wall clock.
func (c steadyClock) onWall(at time.Time) time.Time {
	shift := time.Duration(now()-c.at()) * time.Microsecond
	if at.IsZero() || shift.Abs() < noticeable {
		return at
	}
	return at.Add(shift)
}

// startClock starts the file's steady clock, or reads it if another process started it. On a system
// without a clock that processes share, leases go by a clock of this process, which begins with the
// wall clock's time.
func (s *Store) startClock(ctx context.Context) error {
	boot, since := machine()
	if since == nil {
		begun := time.Now()
		s.steady = steadyClock{now(), func() time.Duration { return time.Since(begun) }}
		return nil
	}
	s.steady = steadyClock{now() - since().Microseconds(), since}
	from, err := s.clockFrom(ctx, boot)
	if err != nil {
		return err
	}
	if len(from) == 0 {
		if err := s.write(ctx, "start the clock", func(tx runner, _ bool) error { return s.steady.begin(tx, boot) }); err != nil {
			return err
		}
		if from, err = s.clockFrom(ctx, boot); err != nil {
			return err
		}
	}
	if len(from) > 0 {
		s.steady.from = from[0]
	}
	return nil
}

// begin starts the clock for this start of the machine, unless another process has.
func (c steadyClock) begin(tx runner, boot string) error {
	first, err := affected(tx.exec(clockStartSQL, boot, c.from))
	if err != nil || first == 0 {
		return err
	}
	at := c.at()
	if _, err := tx.exec(clockLeasesSQL, at, sluice.DefaultSettings().Lease.Milliseconds()); err != nil {
		return err
	}
	for _, statement := range []string{clockStartedSQL, clockStartedForgetSQL, clockPermitsSQL} {
		if _, err := tx.exec(statement, at); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) clockFrom(ctx context.Context, boot string) (from []int64, err error) {
	err = s.read(ctx, "read the clock", func(tx runner) (err error) {
		from, err = list(tx, scanOne[int64], clockSQL, boot)
		return err
	})
	return from, err
}

// tellLeases converts the ends of leases to the wall clock.
func (s *Store) tellLeases(claims []*sluice.Claim) {
	for _, c := range claims {
		c.LeaseUntil = s.steady.onWall(c.LeaseUntil)
	}
}
