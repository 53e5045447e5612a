package upkeep_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/upkeep"
)

// phoneQueue is the internal queue of messages to the phone.
const phoneQueue = "sluice.notify.phone"

func TestMessageThatIsGivenUpIsADeadLetterWithoutAnAlertOfItsOwn(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &phone{down: true}
		defer f.every(20*time.Minute, p)()
		if _, _, err := alert.SetRule(f.Context(), f.store, "dead-letters", "", ada, func(r *alert.Rule) error {
			r.Threshold, r.For = 0, 0
			return nil
		}); err != nil {
			f.Fatal(err)
		}
		f.dead(1)
		pass(alert.NotificationKept + 3*time.Hour)
		page, err := f.client.Jobs(f.Context(), sluice.JobFilter{Queue: phoneQueue, Labels: map[string]string{"rule": "dead-letters"}})
		if err != nil || len(page.Jobs) != 1 || page.Jobs[0].State != sluice.StateDead || page.Jobs[0].Error != "no route to phone" {
			f.Fatalf("the queue of the phone holds %+v, %v", page.Jobs, err)
		}
		pass(24 * time.Hour)
		entries, err := f.client.Audit(f.Context(), sluice.AuditFilter{Object: audit.ObjectAlert})
		if err != nil || len(entries) == 0 {
			f.Fatalf("the audit tells %+v, %v", entries, err)
		}
		for _, e := range entries {
			if strings.Contains(e.Name, phoneQueue) {
				f.Errorf("the audit tells of an alert about notifications: %+v", e)
			}
		}
		p.set(false)
		if err := f.client.Requeue(f.Context(), []sluice.ID{page.Jobs[0].ID}, ada); err != nil {
			f.Fatal(err)
		}
		pass(time.Hour)
		if heard, _ := p.told(); heard != fires {
			f.Errorf("after the requeue it heard %q", heard)
		}
	})
}

// dying is the store of a process that dies before it records a delivery.
type dying struct {
	sluice.Store
	dead atomic.Bool
}

func (d *dying) Unwrap() sluice.Store { return d.Store }

func (d *dying) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	if d.dead.Load() {
		return nil, sluice.ErrUnavailable
	}
	return d.Store.Settle(ctx, settlements)
}

func TestProcessThatDiesBeforeItRecordsADeliveryDeliversAgain(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &ids{phone: &phone{}}
		store := &dying{Store: f.store}
		store.dead.Store(true)
		ctx, cancel := context.WithCancel(f.Context())
		ended := make(chan error, 1)
		options := upkeep.Options{Logger: quiet, Interval: time.Second, HeadInterval: -1, Receivers: []alert.Receiver{p}}
		go func() { ended <- upkeep.New(store, options).Run(ctx) }()
		f.dead(11)
		for heard := ""; heard == ""; heard, _ = p.told() {
			pass(time.Second)
		}
		cancel()
		if err := <-ended; err != nil {
			f.Error(err)
		}
		if heard, _ := p.told(); heard != fires {
			f.Errorf("before the process died it heard %q", heard)
		}
		defer f.with(p)()
		pass(5 * time.Minute)
		if heard, _ := p.told(); heard != fires+", "+fires {
			f.Errorf("from the next process it heard %q", heard)
		}
		if p.known() != 1 {
			f.Errorf("the same message had %d ids", p.known())
		}
	})
}

// stopping is the store of a process that is stopped while it claims: the answer to the claim is lost with its context.
type stopping struct {
	sluice.Store
	stop context.CancelFunc
}

func (s *stopping) Unwrap() sluice.Store { return s.Store }

func (s *stopping) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	claimed, err := s.Store.Claim(ctx, request)
	if s.stop(); ctx.Err() != nil {
		return sluice.Claimed{}, ctx.Err()
	}
	return claimed, err
}

func TestProcessThatIsStoppedWhileItClaimsAMessageLeavesItDue(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &ids{phone: &phone{}}
		ctx, stop := context.WithCancel(f.Context())
		ended := make(chan error, 1)
		options := upkeep.Options{Logger: quiet, Interval: time.Second, HeadInterval: -1, Receivers: []alert.Receiver{p}}
		go func() { ended <- upkeep.New(&stopping{f.store, stop}, options).Run(ctx) }()
		f.dead(11)
		if err := <-ended; err != nil {
			f.Error(err)
		}
		defer f.with(p)()
		pass(5 * time.Second)
		if heard, _ := p.told(); heard != fires {
			f.Errorf("from the next process it heard %q, want %q", heard, fires)
		}
	})
}

// ids is a phone that remembers the IDs of messages.
type ids struct {
	*phone
	mu   sync.Mutex
	seen map[sluice.ID]bool
}

func (i *ids) Notify(ctx context.Context, m alert.Message) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen == nil {
		i.seen = make(map[sluice.ID]bool)
	}
	i.seen[m.ID] = true
	return i.phone.Notify(ctx, m)
}

func (i *ids) known() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.seen)
}

func TestPausedQueueOfAReceiverHoldsItsMessages(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &phone{}
		defer f.with(p)()
		dead := f.dead(11)
		pass(2 * time.Minute)
		if err := f.client.Pause(f.Context(), phoneQueue, ada); err != nil {
			f.Fatal(err)
		}
		f.discard(dead)
		pass(10 * time.Minute)
		if heard, _ := p.told(); heard != fires {
			f.Errorf("while its queue was paused it heard %q", heard)
		}
		if err := f.client.Resume(f.Context(), phoneQueue, ada); err != nil {
			f.Fatal(err)
		}
		pass(time.Minute)
		if heard, _ := p.told(); heard != fires+", "+over {
			f.Errorf("then it heard %q", heard)
		}
	})
}

func TestMessagesOfAReceiverThatNobodyAsksForAreDeleted(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &phone{down: true}
		stop := f.with(p)
		f.dead(11)
		pass(2 * time.Minute)
		stop()
		pass(alert.ReceiverKept)
		defer f.every(10 * time.Minute)()
		pass(time.Hour)
		if _, err := f.client.Queue(f.Context(), phoneQueue); err == nil {
			f.Error("the queue is left")
		}
		if depth, err := f.client.Depth(f.Context(), phoneQueue); err != nil || depth != (sluice.Depth{Queue: phoneQueue}) {
			f.Errorf("left is %+v, %v", depth, err)
		}
	})
}
