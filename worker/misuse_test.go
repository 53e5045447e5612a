package worker_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

func nothing(context.Context, *worker.Job[payment]) error { return nil }

func TestRunSaysWhatIsWrongWithTheWorker(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		options worker.Options
		handler worker.Handler[payment]
		queue   worker.QueueOptions
	}{
		"the handler of queue":                                 {},
		"queue \"payments\": invalid option Slots: -1 must be": {handler: nothing, queue: worker.QueueOptions{Slots: -1}},
		"option Slots: -3 must be":                             {options: worker.Options{Slots: -3}, handler: nothing},
		"option Poll: -1ns must be":                            {options: worker.Options{Poll: -1}, handler: nothing},
	} {
		w := worker.New(memory.New(memory.Options{}), c.options)
		worker.Handle(w, payments, c.handler, c.queue)
		if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("Run gives %v, want an error with %q", err, what)
		}
	}
}

func TestQueueThatIsHandledWhileRunWorksIsServed(t *testing.T) {
	inShop(t, func(s *shop) {
		w := worker.New(s.store, worker.Options{Logger: quiet})
		worker.Handle(w, sluice.QueueOf[payment]("others"), nothing, worker.QueueOptions{})
		ended := make(chan error, 1)
		go func() { ended <- w.Run(s.Context()) }()
		synctest.Wait()
		worker.Handle(w, payments, nothing, worker.QueueOptions{})
		s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		worker.Handle(w, payments, nothing, worker.QueueOptions{})
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "two handlers") {
			t.Errorf("Run ended with %v after a second handler", err)
		}
	})
}

func TestPayloadThatDoesNotDecodeIsTriedAgain(t *testing.T) {
	inShop(t, func(s *shop) {
		id := s.add(sluice.EnqueueOptions{})
		w := worker.New(s.store, worker.Options{Logger: quiet})
		worker.Handle(w, sluice.QueueOf[[]string](payments.Name()), func(context.Context, *worker.Job[[]string]) error { return nil }, worker.QueueOptions{})
		ctx, stop := context.WithCancel(s.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if job := s.job(id); job.State != sluice.StateQueued || job.Attempts != 1 {
			t.Errorf("the job is %s after %d attempts", job.State, job.Attempts)
		}
		s.run(worker.Options{}, nothing) // this worker knows the type
		s.becomes(id, sluice.StateCompleted)
		_ = s.end()
	})
}
