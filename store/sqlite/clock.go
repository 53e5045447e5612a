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

// stepped is by how much the wall clock was set, in microseconds: tests set it so.
var stepped atomic.Int64

// now is the store's clock, in microseconds: the wall clock of the machine. What is due, and what is told, goes by it.
func now() int64 { return time.Now().UnixMicro() + stepped.Load() }

// steadyClock is the clock that leases and rates go by. It runs on where the wall clock is set, and stands while the
// machine sleeps; all processes of one start of the machine read the same. Leases of an earlier start are compared as if
// the wall clock had gone on.
type steadyClock struct {
	from int64 // what it said when since was 0, in microseconds
	// since reads the clock of the machine each time. A process that read it once, and went on by a clock of its own, would
	// be behind the others for ever if it was stopped between the two.
	since func() time.Duration
}

// at is what the clock says.
func (c steadyClock) at() int64 { return c.from + c.since().Microseconds() }

// noticeable is from when on a lease is told by another instant than the stored one.
const noticeable = time.Second

// onWall tells an instant of the steady clock as one of the wall clock.
func (c steadyClock) onWall(at time.Time) time.Time {
	shift := time.Duration(now()-c.at()) * time.Microsecond
	if at.IsZero() || shift.Abs() < noticeable {
		return at
	}
	return at.Add(shift)
}

// startClock begins the file's steady clock, or reads when another process began it. Where the system has no clock that
// processes share, leases go by a clock that begins with this process as the wall clock says.
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

// begin begins the clock of a start of the machine, unless another process has.
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

// tellLeases tells until when leases are by the wall clock.
func (s *Store) tellLeases(claims []*sluice.Claim) {
	for _, c := range claims {
		c.LeaseUntil = s.steady.onWall(c.LeaseUntil)
	}
}
