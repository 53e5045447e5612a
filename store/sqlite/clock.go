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

// steadyClock is the clock that leases go by. It runs on where the wall clock is set, and stands while the machine
// sleeps; all processes of one start of the machine read the same. Leases of an earlier start are compared as if the wall
// clock had gone on.
type steadyClock struct {
	base   int64 // what it said at anchor, in microseconds
	anchor time.Time
}

// at is what the clock says.
func (c steadyClock) at() int64 { return c.base + time.Since(c.anchor).Microseconds() }

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

// startClock reads by how much the steady clock of the machine is behind the clock of the file's leases. Where the system
// has no clock that processes share, leases go by a clock that begins with this process as the wall clock says.
func (s *Store) startClock(ctx context.Context) error {
	boot, since, known := machine()
	s.steady = steadyClock{base: now(), anchor: time.Now()}
	if !known {
		return nil
	}
	begun := s.steady.base - since.Microseconds()
	from, err := s.clockFrom(ctx, boot)
	if err != nil {
		return err
	}
	if len(from) == 0 {
		err = s.write(ctx, "start the clock", func(tx runner, _ bool) error {
			first, err := affected(tx.exec(clockStartSQL, boot, begun))
			if err != nil || first == 0 {
				return err
			}
			if _, err := tx.exec(clockLeasesSQL, s.steady.base, sluice.DefaultSettings().Lease.Milliseconds()); err != nil {
				return err
			}
			for _, statement := range []string{clockStartedSQL, clockStartedForgetSQL, clockPermitsSQL} {
				if _, err := tx.exec(statement, s.steady.base); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if from, err = s.clockFrom(ctx, boot); err != nil {
			return err
		}
	}
	if len(from) > 0 {
		s.steady.base += from[0] - begun
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
