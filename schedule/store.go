package schedule

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of schedules. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// Schedule returns a schedule. An unknown name is an ErrNotFound.
	Schedule(ctx context.Context, name string) (Schedule, error)
	// Schedules lists schedules by name.
	Schedules(ctx context.Context, filter Filter) ([]Schedule, error)
	// SaveSchedule stores the definition of a schedule and whether it is paused, by the rule of SaveQueue of
	// [sluice.Store]. It keeps the progress. A fire that is due stays due, and makes the job of the new definition.
	SaveSchedule(ctx context.Context, schedule Schedule, act sluice.Act) (Schedule, error)
	// DeleteSchedule deletes a schedule. Its jobs stay. An unknown name is an ErrNotFound.
	DeleteSchedule(ctx context.Context, name string, act sluice.Act) error
	// FireSchedules fires schedules whose next fire is due by the store's clock, the longest due first, at most limit. In one
	// transaction it stores their jobs and moves their next fires forward. Two calls at once never fire the same.
	//
	// A job that its queue does not take is not stored, and its fire is [Refused]. The checker compares payloads with the
	// payload_schema of their queues; nil: only workers do.
	FireSchedules(ctx context.Context, limit int, checker sluice.PayloadChecker) (Fired, error)
	// FireSchedule fires a schedule as the act of a person: for each instant, or now if there are none. It also fires a
	// paused schedule. If the queue does not take one of the jobs, FireSchedule stores none and returns why. But instants
	// for which a full queue has no room are [Refused], and the others fire.
	//
	// If the act is repeated, FireSchedule makes no further job, and returns the results of the first time. The checker is that
	// of FireSchedules.
	FireSchedule(ctx context.Context, name string, instants []time.Time, act sluice.Act, checker sluice.PayloadChecker) ([]Fire, error)
}

// Filter chooses schedules. The zero value chooses all.
type Filter struct {
	// Queue chooses the schedules of a queue. Default: all.
	Queue string
	// After is the last name of the previous page. Default: begin with the first.
	After string
	// Limit is the size of a page, 1 to 10,000. Default: 100.
	Limit int
}

// Fired is the result of FireSchedules.
type Fired struct {
	// Schedules counts the schedules that were due. Jobs counts the jobs that their fires made. Skipped, Missed and Refused
	// count fires without a job; see [Progress].
	Schedules int
	Jobs      int
	Skipped   int
	Missed    int
	Refused   int
	// Refusals says why queues took no jobs, by the names of the schedules. A schedule has its last refusal.
	Refusals map[string]string
	// Paused has the names of the schedules that the store paused; each note says why.
	Paused []string
	// Wait is how long until the next fire is due, by the store's clock. 0: some is due already. Negative: none is known.
	Wait time.Duration
}

// add adds the result of a decision.
func (f *Fired) add(d Decision) {
	before, after := d.Before.Progress, d.After.Progress
	f.Schedules++
	f.Jobs += after.Fired - before.Fired
	f.Skipped += after.Skipped - before.Skipped
	f.Missed += after.Missed - before.Missed
	f.Refused += after.Refused - before.Refused
	if d.refusal != "" {
		if f.Refusals == nil {
			f.Refusals = make(map[string]string)
		}
		f.Refusals[d.After.Name] = d.refusal
	}
	if _, paused := d.Paused(); paused {
		f.Paused = append(f.Paused, d.After.Name)
	}
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without schedules, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no schedules")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without schedules. Every method returns the reason.
type missing struct{ err error }

func (m missing) Schedule(context.Context, string) (Schedule, error) { return Schedule{}, m.err }

func (m missing) Schedules(context.Context, Filter) ([]Schedule, error) { return nil, m.err }

func (m missing) SaveSchedule(context.Context, Schedule, sluice.Act) (Schedule, error) {
	return Schedule{}, m.err
}

func (m missing) DeleteSchedule(context.Context, string, sluice.Act) error { return m.err }

func (m missing) FireSchedules(context.Context, int, sluice.PayloadChecker) (Fired, error) {
	return Fired{}, m.err
}

func (m missing) FireSchedule(context.Context, string, []time.Time, sluice.Act, sluice.PayloadChecker) ([]Fire, error) {
	return nil, m.err
}
