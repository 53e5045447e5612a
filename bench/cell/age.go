package cell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/bench/stat"
	"github.com/sluice-queue/sluice/upkeep"
)

const (
	// ageTenths is the number of parts of a store's life.
	ageTenths = 10
	// agePart is the number of jobs that are stored, then claimed and completed.
	agePart = 10_000
	// ageHeld is the tenth, from 0, during which the old snapshot is held. After tenth ageLevel, counted from 1, sizes
	// should no longer grow.
	ageHeld, ageLevel = 1, 3
)

// sizeSQL adds up the bytes of all tables with indexes, except job and done, which keep finished jobs.
const sizeSQL = `
	select coalesce(sum(pg_total_relation_size(c.oid)), 0)::double precision
	from pg_class c
	where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'r' and c.relname not in ('job', 'done')`

// measureAge works off millions of jobs, and compares claim times and table sizes at the end with earlier ones.
func measureAge(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	tending, quit := context.WithCancel(ctx)
	tended := make(chan error, 1)
	go func() { tended <- upkeep.New(store, upkeep.Options{}).Run(tending) }()
	a := &age{task: task, store: store, client: sluice.NewClient(store, sluice.ClientOptions{})}
	err = a.live(ctx)
	quit()
	if err := errors.Join(err, <-tended); err != nil {
		return nil, err
	}
	return a.result(), nil
}

// age holds a store's life: claim times in ms and sizes in bytes, for each tenth.
type age struct {
	task   Task
	store  sluice.Store
	client *sluice.Client
	took   [ageTenths][]float64
	sizes  [ageTenths]float64
}

func (a *age) live(ctx context.Context) error {
	for tenth := range ageTenths {
		if err := a.workOff(ctx, tenth); err != nil {
			return err
		}
		if err := a.measureSize(ctx, tenth); err != nil {
			return fmt.Errorf("measure the tables: %w", err)
		}
	}
	return nil
}

// workOff stores and works off one tenth of the jobs, agePart at a time.
func (a *age) workOff(ctx context.Context, tenth int) error {
	if tenth == ageHeld && a.task.OldSnapshot {
		release, err := holdSnapshot(ctx, a.task)
		if err != nil {
			return fmt.Errorf("hold a snapshot: %w", err)
		}
		defer release()
	}
	for left := a.task.Jobs / ageTenths; left > 0; left -= agePart {
		part := min(agePart, left)
		if err := fill(ctx, a.client, part, nil); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		took, err := timeClaims(ctx, a.store, part/claimLimit)
		if err != nil {
			return fmt.Errorf("work off: %w", err)
		}
		a.took[tenth] = append(a.took[tenth], took...)
	}
	return nil
}

func (a *age) measureSize(ctx context.Context, tenth int) error {
	db, err := openDatabase(a.task)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return db.QueryRowContext(ctx, sizeSQL).Scan(&a.sizes[tenth])
}

func (a *age) result() Result {
	first, last := stat.Percentile(a.took[0], 99), stat.Percentile(a.took[ageTenths-1], 99)
	return Result{
		P50: stat.Percentile(a.took[ageTenths-1], 50), P99: last, FirstP99: first, Aged: last / first,
		Size: a.sizes[ageTenths-1] / (1 << 20), Grown: a.sizes[ageTenths-1] / a.sizes[ageLevel-1],
	}
}
