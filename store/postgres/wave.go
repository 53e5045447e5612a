package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/internal/wave"
)

var _ forecast.Store = (*Store)(nil)

//go:embed sql/wave_size.sql
var waveSizeSQL string

//go:embed sql/wave_cut.sql
var waveCutSQL string

//go:embed sql/wave_places.sql
var wavePlacesSQL string

//go:embed sql/wave_ranks.sql
var waveRanksSQL string

//go:embed sql/wave_tenants.sql
var waveTenantsSQL string

//go:embed sql/wave_counted.sql
var waveCountedSQL string

//go:embed sql/wave_stored.sql
var waveStoredSQL string

//go:embed sql/wave_delete.sql
var waveDeleteSQL string

//go:embed sql/wave_put.sql
var wavePutSQL string

//go:embed sql/wave_forget.sql
var waveForgetSQL string

// waveSlice is about how many jobs one statement of a count reads. One statement takes half a second, so that no
// snapshot is held for long.
const waveSlice = 1_000_000

// slice is the unfinished jobs with ids above after and up to upTo or the end.
type slice struct{ after, upTo pgtype.UUID }

// CountWaves counts jobs by the time at which they fall due. Each job keeps its id, so it stays in one slice even
// if its state changes.
func (s *Store) CountWaves(ctx context.Context) (forecast.Count, error) {
	begun := time.Now()
	frame, sliced, err := s.waveFrame(ctx)
	if err != nil {
		return forecast.Count{}, err
	}
	counter := wave.NewCounter(frame)
	slices, err := s.countWaiting(ctx, counter, frame, sliced)
	if err == nil {
		err = s.countTenants(ctx, counter, frame, slices)
	}
	if err != nil {
		return forecast.Count{}, err
	}
	count := forecast.Count{At: frame.Now, Took: time.Since(begun), Jobs: counter.Jobs()}
	return count, s.keepWaves(ctx, counter, count)
}

// waveFrame returns the times to count in, and whether there are so many jobs that the count needs slices.
func (s *Store) waveFrame(ctx context.Context) (frame wave.Frame, sliced bool, err error) {
	err = s.call(ctx, "count waves", func(ctx context.Context, _ bool) error {
		rows, err := query(ctx, s.pool, waveSizeSQL)
		if err != nil {
			return err
		}
		var now time.Time
		var jobs int64
		_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, row.Scan(&now, &jobs)
		})
		frame, sliced = wave.NewFrame(now), jobs > 2*s.waveSlice
		return err
	})
	return frame, sliced, err
}

// countWaiting counts the waiting jobs by minute and by tenant, slice by slice.
func (s *Store) countWaiting(ctx context.Context, counter *wave.Counter, frame wave.Frame, sliced bool) ([]slice, error) {
	var slices []slice
	part := slice{after: pgtype.UUID{Valid: true}}
	for {
		if sliced {
			var err error
			if part.upTo, err = s.cutWaves(ctx, part.after); err != nil {
				return nil, err
			}
		}
		if err := s.addPlaces(ctx, counter, frame, part); err != nil {
			return nil, err
		}
		if err := s.rankTenants(ctx, counter, part); err != nil {
			return nil, err
		}
		slices = append(slices, part)
		if !part.upTo.Valid {
			return slices, nil
		}
		part.after = part.upTo
	}
}

func (s *Store) cutWaves(ctx context.Context, after pgtype.UUID) (cut pgtype.UUID, err error) {
	err = s.call(ctx, "count waves", func(ctx context.Context, _ bool) error {
		found, err := list(ctx, s.pool, pgx.RowTo[pgtype.UUID], waveCutSQL, after, s.waveSlice)
		if len(found) > 0 {
			cut = found[0]
		}
		return err
	})
	return cut, err
}

// placed is how many jobs of a queue, or of one of its tenants, are in a place.
type placed struct {
	queue, tenant string
	place         int64
	jobs          int
}

func (s *Store) addPlaces(ctx context.Context, counter *wave.Counter, frame wave.Frame, part slice) error {
	found, err := s.listWaves(ctx, func(row pgx.CollectableRow) (p placed, err error) {
		return p, row.Scan(&p.queue, &p.place, &p.jobs)
	}, wavePlacesSQL, frame.Now, frame.Until, part.after, part.upTo)
	for _, p := range found {
		counter.Add(p.queue, wave.Place(p.place), p.jobs)
	}
	return err
}

func (s *Store) rankTenants(ctx context.Context, counter *wave.Counter, part slice) error {
	found, err := s.listWaves(ctx, func(row pgx.CollectableRow) (p placed, err error) {
		return p, row.Scan(&p.queue, &p.tenant, &p.jobs)
	}, waveRanksSQL, part.after, part.upTo)
	for _, p := range found {
		counter.Rank(wave.Tenant{Queue: p.queue, Name: p.tenant}, p.jobs)
	}
	return err
}

// countTenants counts the jobs of the largest tenants.
func (s *Store) countTenants(ctx context.Context, counter *wave.Counter, frame wave.Frame, slices []slice) error {
	var queues, tenants []string
	for _, t := range counter.Largest() {
		queues, tenants = append(queues, t.Queue), append(tenants, t.Name)
	}
	if len(queues) == 0 {
		return nil
	}
	for _, part := range slices {
		found, err := s.listWaves(ctx, func(row pgx.CollectableRow) (p placed, err error) {
			return p, row.Scan(&p.queue, &p.tenant, &p.place, &p.jobs)
		}, waveTenantsSQL, frame.Now, frame.Until, part.after, part.upTo, queues, tenants)
		if err != nil {
			return err
		}
		for _, p := range found {
			counter.AddTenant(wave.Tenant{Queue: p.queue, Name: p.tenant}, wave.Place(p.place), p.jobs)
		}
	}
	return nil
}

func (s *Store) listWaves(ctx context.Context, scan pgx.RowToFunc[placed], text string, args ...any) (found []placed, err error) {
	err = s.call(ctx, "count waves", func(ctx context.Context, _ bool) (err error) {
		found, err = list(ctx, s.pool, scan, text, args...)
		return err
	})
	return found, err
}

// keepWaves stores a count, each queue in its own transaction.
func (s *Store) keepWaves(ctx context.Context, counter *wave.Counter, count forecast.Count) error {
	stored, err := s.Queues(ctx, sluice.QueueFilter{})
	if err != nil {
		return err
	}
	names := counter.Queues(stored)
	for _, name := range names {
		if err := s.keepQueueWaves(ctx, name, counter.Rows(name), count); err != nil {
			return err
		}
	}
	return s.call(ctx, "forget waves", func(ctx context.Context, _ bool) error {
		return exec(ctx, s.pool, waveForgetSQL, names)
	})
}

func (s *Store) keepQueueWaves(ctx context.Context, queue string, counted []wave.Row, count forecast.Count) error {
	return s.call(ctx, "keep waves", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			latest, err := list(ctx, tx, pgx.RowTo[string], waveCountedSQL, queue, count.At, float64(count.Took)/float64(time.Millisecond))
			if err != nil || len(latest) == 0 {
				return err
			}
			stored, err := list(ctx, tx, scanWaveRow, waveStoredSQL, queue)
			if err != nil {
				return err
			}
			gone, put := wave.Differences(stored, counted)
			if len(gone) > 0 {
				parts, instants, _, _ := waveColumns(gone)
				if err := exec(ctx, tx, waveDeleteSQL, queue, parts, instants); err != nil {
					return err
				}
			}
			if len(put) == 0 {
				return nil
			}
			parts, instants, jobs, tenants := waveColumns(put)
			return exec(ctx, tx, wavePutSQL, queue, parts, instants, jobs, tenants)
		})
	})
}

func scanWaveRow(row pgx.CollectableRow) (wave.Row, error) {
	var r wave.Row
	err := row.Scan(&r.Part, &r.At, &r.Jobs, &r.Tenants)
	r.At = r.At.UTC()
	return r, err
}

func waveColumns(rows []wave.Row) (parts []string, instants []time.Time, jobs []int64, tenants []string) {
	for _, r := range rows {
		parts, instants = append(parts, r.Part), append(instants, r.At)
		jobs, tenants = append(jobs, int64(r.Jobs)), append(tenants, r.Tenants)
	}
	return parts, instants, jobs, tenants
}
