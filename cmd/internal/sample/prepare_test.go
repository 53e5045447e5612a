package sample_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/sample"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/store/memory"
)

// ending is a store whose user ends at a call that adds jobs or saves a queue.
type ending struct {
	sluice.Store
	left int
	end  context.CancelFunc
}

func (s *ending) Unwrap() sluice.Store { return s.Store }

func (s *ending) count() {
	if s.left--; s.left == 0 {
		s.end()
	}
}

func (s *ending) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	s.count()
	return s.Store.SaveQueue(ctx, queue, act)
}

func (s *ending) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	s.count()
	return s.Store.Enqueue(ctx, jobs)
}

func prepare(ctx context.Context, store sluice.Store) error {
	return sample.New(store, sample.Options{Engine: local.New(store, local.Options{}), Alone: true}).Prepare(ctx)
}

// TestAPartOfTheShopIsNoWholeOne ends the fill at each of its calls, and fills again.
func TestAPartOfTheShopIsNoWholeOne(t *testing.T) {
	t.Parallel()
	for calls := 1; ; calls++ {
		ctx, end := context.WithCancel(t.Context())
		store := &ending{memory.New(memory.Options{}), calls, end}
		err := prepare(ctx, store)
		queues, listErr := store.Queues(t.Context(), sluice.QueueFilter{})
		again := prepare(t.Context(), store)
		end()
		if err == nil {
			if again != nil || calls < 10 {
				t.Errorf("the whole shop takes %d calls; filled again: %v", calls, again)
			}
			return
		}
		if listErr != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("ended at call %d: %v, %v", calls, err, listErr)
		}
		if began := len(queues) > 0; began != errors.Is(again, sample.ErrPart) || !began && again != nil {
			t.Errorf("ended at call %d, with %d queues: filled again: %v", calls, len(queues), again)
		}
	}
}
