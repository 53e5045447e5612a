package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/internal/wave"
)

var _ forecast.Store = (*Store)(nil)

// CountWaves counts jobs by the time at which they fall due.
func (s *Store) CountWaves(ctx context.Context) (forecast.Count, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return forecast.Count{}, err
	}
	defer leave()
	begun := time.Now()
	frame := wave.NewFrame(s.now())
	counter := wave.NewCounter(frame)
	s.countPlaces(frame, func(t wave.Tenant, p wave.Place) {
		counter.Add(t.Queue, p, 1)
		if p != wave.InFlight {
			counter.Rank(t, 1)
		}
	})
	largest := counter.Largest()
	named := make(map[wave.Tenant]bool, len(largest))
	for _, t := range largest {
		named[t] = true
	}
	s.countPlaces(frame, func(t wave.Tenant, p wave.Place) {
		if named[t] {
			counter.AddTenant(t, p, 1)
		}
	})
	count := forecast.Count{At: frame.Now, Took: time.Since(begun), Jobs: counter.Jobs()}
	return count, s.keepWaves(counter, count)
}

func (s *Store) countPlaces(frame wave.Frame, count func(wave.Tenant, wave.Place)) {
	for _, j := range s.jobs {
		if !j.live {
			continue
		}
		if place, counted := frame.PlaceOf(j.State, !j.BlockedBy.IsZero(), j.DueAt); counted {
			count(wave.Tenant{Queue: j.Queue, Name: j.Tenant}, place)
		}
	}
}

func (s *Store) keepWaves(counter *wave.Counter, count forecast.Count) error {
	stored := make([]sluice.Queue, 0, len(s.queues))
	for _, q := range s.queues {
		stored = append(stored, q)
	}
	s.waves = nil
	for _, name := range counter.Queues(stored) {
		q := forecast.QueueCounts{Queue: name, CountedAt: count.At, Took: count.Took}
		rows := counter.Rows(name)
		slices.SortStableFunc(rows, func(a, b wave.Row) int { return a.At.Compare(b.At) })
		for _, row := range rows {
			if err := row.Read(&q); err != nil {
				return err
			}
		}
		s.waves = append(s.waves, q)
	}
	return nil
}

// newestDone is how many finished jobs Waves reads to estimate the mean run time.
const newestDone = 1000

// Waves returns the last count.
func (s *Store) Waves(ctx context.Context, filter forecast.Filter) (forecast.Counts, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return forecast.Counts{}, err
	}
	defer leave()
	out := forecast.Counts{Now: s.now().UTC()}
	var done []sluice.Job
	for _, j := range s.jobs {
		if !j.live && !j.ClaimedAt.IsZero() && j.State != sluice.StateCancelled {
			done = append(done, j.Job)
		}
	}
	done = sluice.JobFilter{Limit: newestDone}.Page(done, sluice.ID{}).Jobs
	for _, counted := range s.waves {
		if filter.Queue != "" && filter.Queue != counted.Queue {
			continue
		}
		q := chosenWaves(counted, filter, out.Now)
		q.RunTime, q.Runs = meanRun(done, q.Queue)
		out.Queues = append(out.Queues, q)
	}
	return out, nil
}

// chosenWaves returns a copy with the part of the count that the filter asks for.
func chosenWaves(q forecast.QueueCounts, filter forecast.Filter, now time.Time) forecast.QueueCounts {
	ahead := q.Ahead
	q.Ahead = nil
	for _, w := range ahead {
		if filter.Ahead > 0 && !w.At.Before(now.Add(filter.Ahead)) {
			q.Later.Jobs += w.Jobs
			continue
		}
		w.Tally = chosenTally(w.Tally, filter)
		q.Ahead = append(q.Ahead, w)
	}
	for _, t := range []*forecast.Tally{&q.Due, &q.InFlight, &q.Blocked, &q.Later} {
		*t = chosenTally(*t, filter)
	}
	return q
}

func chosenTally(t forecast.Tally, filter forecast.Filter) forecast.Tally {
	t.Tenants = maps.Clone(t.Tenants)
	if !filter.Tenants {
		t.Tenants = nil
	}
	return t
}

func meanRun(done []sluice.Job, queue string) (time.Duration, int) {
	var sum time.Duration
	runs := 0
	for _, j := range done {
		if j.Queue == queue {
			sum, runs = sum+j.FinishedAt.Sub(j.ClaimedAt), runs+1
		}
	}
	if runs == 0 {
		return 0, 0
	}
	return sum / time.Duration(runs), runs
}
