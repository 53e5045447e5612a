package remote

import (
	"context"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/stat"
)

// Flows says how much of their limits queues and tenants use.
func (s *Store) Flows(ctx context.Context, topTenants int) (all []sluice.Flow, err error) {
	var answer wire.UseList
	query := params{"tenants": {strconv.Itoa(topTenants)}}
	err = s.call(ctx, request{verb: "read the use of limits", path: "/use", query: query.values(), out: &answer})
	for _, use := range answer.Queues {
		all = append(all, use.Flow())
	}
	return all, err
}

// Stats lists slots of statistics.
func (s *Store) Stats(ctx context.Context, filter stat.Filter) (all []stat.Stat, err error) {
	q := params{"queue": filter.Queues}
	q.text("tenant", filter.Tenant)
	if filter.Tenants {
		q.text("tenants", "true")
	}
	if filter.Levels {
		q.text("levels", "true")
	}
	if filter.Every > 0 {
		q.text("every", filter.Every.String())
		if within := filter.From.Truncate(filter.Every); within.Before(filter.From) {
			filter.From = within.Add(filter.Every) // the server would move it back to the begin of its slot
		}
	}
	q.instant("from", filter.From)
	q.instant("to", filter.To)
	q.number("limit", filter.Limit)
	var answer wire.StatList
	err = s.call(ctx, request{verb: "read statistics", path: "/stats", query: q.values(), out: &answer})
	for _, view := range answer.Slots {
		all = append(all, view.Read())
	}
	return all, err
}

// AddStats is an [*UnsupportedError]: the server counts.
func (s *Store) AddStats(context.Context, string, []stat.Stat) error {
	return s.theServer("To count moves")
}

// FoldStats is an [*UnsupportedError]: the server does the upkeep.
func (s *Store) FoldStats(context.Context, int) (int, error) {
	return 0, s.theServer("To fold statistics")
}

// Waves reads the last count of the jobs that fall due.
func (s *Store) Waves(ctx context.Context, filter forecast.Filter) (forecast.Counts, error) {
	q := params{}
	q.text("queue", filter.Queue)
	if filter.Ahead > 0 {
		q.text("ahead", filter.Ahead.String())
	}
	if filter.Tenants {
		q.text("tenants", "true")
	}
	var answer wire.WaveList
	err := s.call(ctx, request{verb: "read what falls due", path: "/waves", query: q.values(), out: &answer})
	return answer.Read(), err
}

// CountWaves is an [*UnsupportedError]: the server does the upkeep.
func (s *Store) CountWaves(context.Context) (forecast.Count, error) {
	return forecast.Count{}, s.theServer("To count what falls due")
}

// instant adds an instant.
func (p params) instant(name string, at time.Time) {
	if !at.IsZero() {
		p.text(name, at.Format(time.RFC3339Nano))
	}
}
