package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

func queueDeleteRules() []Rule {
	return []Rule{
		{"R-522", "An empty queue is deleted with all that is stored of it, and told with who and why; one that holds a job, unfinished or finished, is not, nor one of which an operation is under way; an unknown one is not found.", "I-4", func(w *world) {
			w.is(w.Store.DeleteQueue(w.ctx, queue, person("test")), sluice.ErrNotFound)
			q := w.save(func(s *sluice.Settings) { s.Rate = sluice.RatePerSecond(5) })
			job := w.add(sluice.EnqueueOptions{})
			refused := func(want sluice.QueueHolds) {
				w.Helper()
				err := w.Other.DeleteQueue(w.ctx, queue, person("test"))
				w.is(err, sluice.ErrNotAllowed)
				var holds *sluice.QueueNotEmptyError
				if !errors.As(err, &holds) {
					w.Fatalf("error %v", err)
				}
				equal(w, "holds", fmt.Sprint(holds.Holds), fmt.Sprint(want))
			}
			refused(sluice.QueueHolds{Unfinished: 1})
			_, err := w.Store.Cancel(w.ctx, []sluice.ID{job}, person("test"))
			w.ok(err)
			refused(sluice.QueueHolds{Finished: 1})
			_, err = w.Store.DeleteJobs(w.ctx, []sluice.ID{job}, person("test"))
			w.ok(err)
			op, err := operation.Given(w.Store).SaveOperation(w.ctx, operation.Operation{
				ID: sluice.NewID(), Kind: operation.KindCancel, Query: search.Query{Queue: queue}, State: operation.StateRunning,
			}, person("test"))
			w.ok(err)
			refused(sluice.QueueHolds{Operations: []sluice.ID{op.ID}})
			op.State, op.EndedAt = operation.StateStopped, time.Now()
			_, err = operation.Given(w.Store).SaveOperation(w.ctx, op, person("test"))
			w.ok(err)
			w.ok(w.Store.DeleteQueue(w.ctx, queue, person("no longer used")))
			w.is(w.Other.DeleteQueue(w.ctx, queue, person("test")), sluice.ErrNotFound)
			queues, err := w.Other.Queues(w.ctx, sluice.QueueFilter{})
			w.ok(err)
			equal(w, "queues", len(queues), 0)
			told, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: queue, Limit: 1})
			w.ok(err)
			equal(w, "event", told[0].Event, audit.EventDelete)
			equal(w, "reason", told[0].Reason, "no longer used")
			_, err = w.Store.SaveQueue(w.ctx, q, person("test"))
			w.is(err, sluice.ErrConflict)
		}},
		{"R-523", "A batch is refused as a whole if a queue that was stored when its settings were read is stored no more.", "I-1", func(w *world) {
			w.save(func(*sluice.Settings) {})
			w.ok(w.Other.DeleteQueue(w.ctx, queue, person("test")))
			job, other := insertOf(sluice.EnqueueOptions{}), insertOf(sluice.EnqueueOptions{})
			job.Known, other.Queue = true, "other"
			_, err := w.Store.Enqueue(w.ctx, []sluice.Insert{other, job})
			w.is(err, sluice.ErrQueueGone)
			_, err = w.Store.Job(w.ctx, other.ID)
			w.is(err, sluice.ErrNotFound)
			keyed := job
			keyed.Key, keyed.KeyScope, keyed.OnDuplicate = "k", sluice.WhileUnfinished, sluice.Keep
			_, err = w.Store.Enqueue(w.ctx, []sluice.Insert{keyed})
			w.is(err, sluice.ErrQueueGone)
			w.save(func(*sluice.Settings) {})
			receipts, err := w.Store.Enqueue(w.ctx, []sluice.Insert{other, keyed})
			w.ok(err)
			equal(w, "duplicate", receipts[1].Duplicate, false)
		}},
		{"R-524", "A queue is deleted beside enqueues into it: no job lies in a queue that is not stored.", "I-1", func(w *world) {
			stop := make(chan struct{})
			var wait sync.WaitGroup
			for _, store := range []sluice.Store{w.Store, w.Other, w.Store} {
				wait.Go(func() { w.enqueueUntil(stop, store) })
			}
			for deleted, end := 0, time.Now().Add(20*time.Second); deleted < 10 && time.Now().Before(end); {
				if w.emptyAndDelete() {
					deleted++
				}
			}
			close(stop)
			wait.Wait()
			page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Queue: queue, Limit: 10})
			w.ok(err)
			stored, err := w.Store.Queues(w.ctx, sluice.QueueFilter{})
			w.ok(err)
			if len(page.Jobs) > 0 && len(stored) == 0 {
				w.Errorf("%d jobs lie in a queue that is not stored", len(page.Jobs))
			}
		}},
	}
}

// enqueueUntil enqueues a job now and then, and looks each time whether its queue is stored. No one else deletes the queue
// while the job is there.
func (w *world) enqueueUntil(stop <-chan struct{}, store sluice.Store) {
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for {
		select {
		case <-stop:
			return
		case <-time.After(rand.N(20 * time.Millisecond)):
		}
		receipt, err := client.Enqueue(w.ctx, sluice.NewJob{Queue: queue, Payload: []byte("1")})
		if errors.Is(err, sluice.ErrQueueGone) {
			continue // it was deleted in the middle of each try
		}
		if err != nil {
			w.Errorf("enqueue: %v", err)
			return
		}
		stored, err := store.Queues(w.ctx, sluice.QueueFilter{})
		if err != nil {
			w.Errorf("list queues: %v", err)
			return
		}
		if _, err := store.Job(w.ctx, receipt.ID); err == nil && len(stored) == 0 {
			w.Errorf("job %s lies in a queue that is not stored", receipt.ID)
			return
		}
	}
}

// emptyAndDelete ends and deletes the jobs of the queue, and then tries to delete it.
func (w *world) emptyAndDelete() bool {
	page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Queue: queue, Limit: 1000})
	w.ok(err)
	var ids []sluice.ID
	for _, job := range page.Jobs {
		ids = append(ids, job.ID)
	}
	_, err = w.Store.Cancel(w.ctx, ids, person("test"))
	w.ok(err)
	_, err = w.Store.DeleteJobs(w.ctx, ids, person("test"))
	w.ok(err)
	err = w.Store.DeleteQueue(w.ctx, queue, person("test"))
	if err != nil && !errors.Is(err, sluice.ErrNotAllowed) && !errors.Is(err, sluice.ErrNotFound) {
		w.ok(err)
	}
	return err == nil
}
