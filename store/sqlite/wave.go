package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/internal/wave"
)

var _ forecast.Store = (*Store)(nil)

//go:embed sql/wave_jobs.sql
var waveJobsSQL string

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

//go:embed sql/wave_gone.sql
var waveGoneSQL string

//go:embed sql/wave_forget.sql
var waveForgetSQL string

//go:embed sql/wave_forget_count.sql
var waveForgetCountSQL string

// waveSlice is how many jobs one statement of a count reads. One statement takes some hundredths of
// a second, so that no reader keeps the log from being checkpointed.
const waveSlice = 50_000

// slice is the unfinished jobs with numbers above after and up to upTo.
type slice struct{ after, upTo int64 }

// CountWaves counts jobs by the time at which they fall due. Reads happen beside the writer; only
// differences are written. Each job keeps its number, so it stays in one slice even if its state
// changes.
func (s *Store) CountWaves(ctx context.Context) (forecast.Count, error) {
	begun := time.Now()
	frame := wave.NewFrame(time.UnixMicro(now()))
	counter := wave.NewCounter(frame)
	slices, err := s.countJobs(ctx, counter, frame)
	if err == nil {
		err = s.countTenants(ctx, counter, frame, slices)
	}
	if err != nil {
		return forecast.Count{}, err
	}
	count := forecast.Count{At: frame.Now, Took: time.Since(begun), Jobs: counter.Jobs()}
	return count, s.keepWaves(ctx, counter, count)
}

// countJobs counts all jobs by minute and by tenant, slice by slice.
func (s *Store) countJobs(ctx context.Context, counter *wave.Counter, frame wave.Frame) ([]slice, error) {
	var slices []slice
	for after := int64(0); ; {
		var found *tallies
		err := s.read(ctx, "count waves", func(tx runner) (err error) {
			found, err = readTallies(tx, waveJobsSQL, frame.Now.UnixMicro(), frame.Until.UnixMicro(), after, s.waveSlice)
			return err
		})
		if err != nil {
			return nil, err
		}
		found.addTo(counter)
		if found.rows > 0 {
			slices = append(slices, slice{after, found.upTo})
			after = found.upTo
		}
		if found.rows < s.waveSlice {
			return slices, nil
		}
	}
}

// tallies is the contents of a slice, by queue.
type tallies struct {
	rows   int
	upTo   int64
	queues map[string]*tally
}

type tally struct {
	places  map[int64]int
	tenants map[string]int
}

// readTallies adds up the rows in Go: SQLite would sort all rows to group them.
func readTallies(tx runner, text string, args ...any) (*tallies, error) {
	rows, err := tx.query(text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	out := &tallies{queues: make(map[string]*tally)}
	var queue, tenant, last string
	var place sql.NullInt64
	var of *tally
	for rows.Next() {
		if err := rows.Scan(&out.upTo, &queue, &tenant, &place); err != nil {
			return nil, err
		}
		out.rows++
		if !place.Valid {
			continue
		}
		if of == nil || queue != last {
			of, last = out.of(queue), queue
		}
		of.places[place.Int64]++
		if wave.Place(place.Int64) != wave.InFlight {
			of.tenants[tenant]++
		}
	}
	return out, rows.Err()
}

func (t *tallies) of(queue string) *tally {
	if t.queues[queue] == nil {
		t.queues[queue] = &tally{places: make(map[int64]int), tenants: make(map[string]int)}
	}
	return t.queues[queue]
}

func (t *tallies) addTo(counter *wave.Counter) {
	for queue, of := range t.queues {
		for place, jobs := range of.places {
			counter.Add(queue, wave.Place(place), jobs)
		}
		for tenant, jobs := range of.tenants {
			counter.Rank(wave.Tenant{Queue: queue, Name: tenant}, jobs)
		}
	}
}

// placed is how many jobs of a tenant are in a place.
type placed struct {
	of    wave.Tenant
	place wave.Place
	jobs  int
}

func scanPlaced(rows *sql.Rows) (p placed, err error) {
	return p, rows.Scan(&p.of.Queue, &p.of.Name, &p.place, &p.jobs)
}

// countTenants counts the jobs of the largest tenants.
func (s *Store) countTenants(ctx context.Context, counter *wave.Counter, frame wave.Frame, slices []slice) error {
	largest := [][2]string{}
	for _, t := range counter.Largest() {
		largest = append(largest, [2]string{t.Queue, t.Name})
	}
	named, err := jsonOf(largest)
	if err != nil {
		return err
	}
	for _, part := range slices {
		var found []placed
		err := s.read(ctx, "count waves", func(tx runner) (err error) {
			found, err = list(tx, scanPlaced, waveTenantsSQL, frame.Now.UnixMicro(), frame.Until.UnixMicro(), part.after, part.upTo, named)
			return err
		})
		if err != nil {
			return err
		}
		for _, p := range found {
			counter.AddTenant(p.of, p.place, p.jobs)
		}
	}
	return nil
}

// keepWaves stores a count, each queue in its own write, so that no other write waits for all of
// them.
func (s *Store) keepWaves(ctx context.Context, counter *wave.Counter, count forecast.Count) error {
	stored, err := s.Queues(ctx, sluice.QueueFilter{})
	if err != nil {
		return err
	}
	names := counter.Queues(stored)
	for _, name := range names {
		rows := counter.Rows(name) // before the write, because other writers wait for it
		err := s.write(ctx, "keep waves", func(tx runner, _ bool) error {
			return keepQueueWaves(tx, name, rows, count)
		})
		if err != nil {
			return err
		}
	}
	return s.forgetWaves(ctx, names)
}

func keepQueueWaves(tx runner, queue string, counted []wave.Row, count forecast.Count) error {
	latest, err := list(tx, scanOne[string], waveCountedSQL, queue, count.At.UnixMicro(), count.Took.Microseconds(), now())
	if err != nil || len(latest) == 0 {
		return err
	}
	stored, err := list(tx, scanWaveRow, waveStoredSQL, queue)
	if err != nil {
		return err
	}
	gone, put := wave.Differences(stored, counted)
	for _, r := range gone {
		if _, err := tx.exec(waveDeleteSQL, queue, r.Part, r.At.UnixMicro()); err != nil {
			return err
		}
	}
	for _, r := range put {
		if _, err := tx.exec(wavePutSQL, queue, r.Part, r.At.UnixMicro(), r.Jobs, r.Tenants); err != nil {
			return err
		}
	}
	return nil
}

func scanWaveRow(rows *sql.Rows) (wave.Row, error) {
	var r wave.Row
	var at int64
	err := rows.Scan(&r.Part, &at, &r.Jobs, &r.Tenants)
	r.At = time.UnixMicro(at).UTC()
	return r, err
}

// forgetWaves deletes the counts of queues that no longer exist.
func (s *Store) forgetWaves(ctx context.Context, there []string) error {
	names, err := jsonOf(there)
	if err != nil {
		return err
	}
	var gone []string
	err = s.read(ctx, "forget waves", func(tx runner) (err error) {
		gone, err = list(tx, scanOne[string], waveGoneSQL, names)
		return err
	})
	for _, queue := range gone {
		err = errors.Join(err, s.write(ctx, "forget waves", func(tx runner, _ bool) error {
			_, err := tx.exec(waveForgetSQL, queue)
			if err == nil {
				_, err = tx.exec(waveForgetCountSQL, queue)
			}
			return err
		}))
	}
	return err
}
