package cell

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

const (
	// arrivalEvery is the interval of enqueues.
	arrivalEvery = 10 * time.Millisecond
	// steadySlices is the number of time slices, of which the worst gives Lowest.
	steadySlices = 10
)

// steady is a stream of jobs that arrive at a rate, and the workers that run them.
type steady struct {
	task   Task
	stores []sluice.Store // one per worker, as in separate processes; the first also enqueues
	seen   arrivals
	slices [steadySlices]atomic.Int64 // jobs begun in each slice
	begun  time.Time
}

// measureSteady stores jobs at a rate while workers run them, and measures the cost of a job and the evenness of the
// work.
func measureSteady(ctx context.Context, task Task) (Result, error) {
	s := &steady{task: task}
	defer s.close()
	for range max(task.Workers, 1) {
		store, err := openStore(ctx, task)
		if err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
		s.stores = append(s.stores, store)
	}
	client := sluice.NewClient(s.stores[0], sluice.ClientOptions{})
	if err := setLimits(ctx, client, task); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	if err := fill(ctx, client, task.Due, ofTenants(task.Tenants)); err != nil {
		return nil, fmt.Errorf("jobs that are due: %w", err)
	}
	if err := tidy(ctx, task); err != nil {
		return nil, err
	}
	took, used, err := measured(task, func() (time.Duration, error) { return s.run(ctx, client) })
	if err != nil {
		return nil, err
	}
	return s.result(took, used)
}

// run stores and works off jobs, and returns when all have begun.
func (s *steady) run(ctx context.Context, client *sluice.Client) (time.Duration, error) {
	working, quit := context.WithCancel(ctx)
	defer quit()
	var running sync.WaitGroup
	errs := make(chan error, len(s.stores)+1)
	s.begun = time.Now()
	for _, store := range s.stores {
		w := worker.New(store, worker.Options{Slots: s.task.Slots})
		worker.Handle(w, parcels, s.handle, worker.QueueOptions{})
		running.Go(func() { errs <- w.Run(working) })
	}
	running.Go(func() { errs <- upkeep.New(s.stores[0], upkeep.Options{}).Run(working) })
	stored, err := s.store(ctx, client)
	stored += s.task.Due
	if err == nil {
		err = waitUntil(ctx, func() (bool, error) { return s.seen.count() >= stored, nil })
	}
	took := time.Since(s.begun)
	quit()
	running.Wait()
	close(errs)
	for ended := range errs {
		err = errors.Join(err, ended)
	}
	return took, err
}

func (s *steady) handle(_ context.Context, job *worker.Job[Parcel]) error {
	s.seen.note(job.Payload)
	slice := int(time.Since(s.begun).Seconds() / s.task.Seconds * steadySlices)
	s.slices[min(slice, steadySlices-1)].Add(1)
	return nil
}

// store enqueues jobs at task.Rate, in batches every arrivalEvery, and returns their number.
func (s *steady) store(ctx context.Context, client *sluice.Client) (int, error) {
	stored := 0
	for stored < int(s.task.Seconds*float64(s.task.Rate)) {
		due := int(time.Since(s.begun).Seconds() * float64(s.task.Rate))
		jobs := make([]sluice.NewJob, 0, min(due-stored, batch))
		for range min(due-stored, batch) {
			options := sluice.EnqueueOptions{}
			if s.task.Tenants > 0 {
				options.Tenant = fmt.Sprintf("tenant-%d", rand.IntN(s.task.Tenants))
			}
			parcel := newParcel()
			parcel.Sent = time.Now().UnixNano()
			job, err := parcels.NewJob(parcel, options)
			if err != nil {
				return stored, err
			}
			jobs = append(jobs, job)
		}
		if len(jobs) > 0 {
			if _, err := client.EnqueueMany(ctx, jobs); err != nil {
				return stored, err
			}
		}
		stored += len(jobs)
		time.Sleep(arrivalEvery)
	}
	return stored, nil
}

func (s *steady) result(took time.Duration, used cpu) (Result, error) {
	jobs := s.seen.count()
	if jobs == 0 {
		return nil, errors.New("no job came in")
	}
	result := percentiles(s.seen.took)
	per1000 := func(d time.Duration) float64 { return millis(d) * 1000 / float64(jobs) }
	result[ClientCPU], result[TotalCPU] = per1000(used.client), per1000(used.client+used.server)
	if s.task.ServerPID != 0 {
		result[ServerCPU] = per1000(used.server)
	}
	result[WorkRate] = float64(jobs) / took.Seconds()
	counts := make([]int64, steadySlices)
	for i := range s.slices {
		counts[i] = s.slices[i].Load()
	}
	result[Lowest] = float64(slices.Min(counts)) * steadySlices / float64(jobs)
	return result, nil
}

func (s *steady) close() {
	for _, store := range s.stores {
		_ = store.Close()
	}
}
