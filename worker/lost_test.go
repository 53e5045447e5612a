package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// frozen is a store whose worker learns nothing about its claims until the store thaws.
type frozen struct {
	deaf
	thawed, mute atomic.Bool
}

func (f *frozen) Renew(ctx context.Context, renewals []sluice.Renewal) ([]sluice.ID, error) {
	if !f.thawed.Load() {
		return nil, nil
	}
	return f.Store.Renew(ctx, renewals)
}

func (f *frozen) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	if f.mute.Load() {
		return sluice.Job{}, errCut
	}
	return f.Store.Job(ctx, id)
}

// TestAHandlerIsToldWhetherItsJobWasCancelledOrLost ends the claim of a running job in several ways, and checks the
// cause of the handler's context. Only with ErrCancelled may a handler clean up, because then nobody else has the job.
func TestAHandlerIsToldWhetherItsJobWasCancelledOrLost(t *testing.T) {
	cancel := func(s *shop, id sluice.ID) error {
		return s.client.Cancel(s.Context(), []sluice.ID{id}, sluice.Act{By: "ada"})
	}
	requeue := func(s *shop, id sluice.ID) error {
		return s.client.Requeue(s.Context(), []sluice.ID{id}, sluice.Act{By: "ada", Reason: "test"})
	}
	claim := func(s *shop, _ sluice.ID) error {
		claimed, err := s.store.Claim(s.Context(), sluice.ClaimRequest{Queue: payments.Name(), Limit: 1, Holder: "other", Lease: time.Minute, Token: sluice.NewToken()})
		if err == nil && len(claimed.Jobs) != 1 {
			err = errors.New("the other got no job")
		}
		return err
	}
	takeBack := func(s *shop, _ sluice.ID) error {
		time.Sleep(2 * time.Minute)
		_, err := s.store.Recover(s.Context(), payments.Name(), 10, "upkeep")
		return err
	}
	forget := func(s *shop, id sluice.ID) error {
		_, err := s.store.DeleteJobs(s.Context(), []sluice.ID{id}, sluice.Act{By: "ada"})
		return errors.Join(err, s.store.DeleteQueue(s.Context(), payments.Name(), sluice.Act{By: "ada"}))
	}
	mute := func(s *shop, _ sluice.ID) error { s.store.(*frozen).mute.Store(true); return nil }
	type acts = []func(*shop, sluice.ID) error
	for name, c := range map[string]struct {
		acts acts
		want error
	}{
		"cancelled":              {acts{cancel}, sluice.ErrCancelled},
		"cancelled and requeued": {acts{cancel, requeue}, sluice.ErrLost},
		"cancelled, requeued and claimed by another": {acts{cancel, requeue, claim}, sluice.ErrLost},
		"taken by another":                           {acts{takeBack, claim}, sluice.ErrLost},
		"taken by another and then cancelled":        {acts{takeBack, claim, cancel}, sluice.ErrLost},
		"cancelled, deleted with its queue":          {acts{cancel, forget}, sluice.ErrLost},
		"cancelled, and nobody can say":              {acts{cancel, mute}, sluice.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.settings(noJitter)
				s.store = &frozen{deaf: deaf{s.store}}
				causes, saved := make(chan error, 1), make(chan error, 1)
				s.run(worker.Options{Slots: 1, Poll: time.Hour}, func(ctx context.Context, job *worker.Job[payment]) error {
					<-ctx.Done()
					causes <- context.Cause(ctx)
					saved <- job.SaveCheckpoint(context.WithoutCancel(ctx), 1)
					return nil
				})
				id := s.add(sluice.EnqueueOptions{})
				for s.job(id).State != sluice.StateClaimed {
					time.Sleep(time.Minute)
					synctest.Wait()
				}
				for _, act := range c.acts {
					if err := act(s, id); err != nil {
						t.Fatal(err)
					}
				}
				s.store.(*frozen).thawed.Store(true)
				other := map[error]error{sluice.ErrLost: sluice.ErrCancelled, sluice.ErrCancelled: sluice.ErrLost}[c.want]
				for what, err := range map[string]error{"the cause": <-causes, "the checkpoint's error": <-saved} {
					if !errors.Is(err, c.want) || errors.Is(err, other) {
						t.Errorf("%s is %v, want %v", what, err, c.want)
					}
				}
				_ = s.end()
			})
		})
	}
}

// lateAnswer is a store that answers the first claim of a job only after the job's lease.
type lateAnswer struct {
	sluice.Store
	late time.Duration
	once sync.Once
}

// Unwrap returns the decorated store.
func (l *lateAnswer) Unwrap() sluice.Store { return l.Store }

func (l *lateAnswer) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	claimed, err := l.Store.Claim(ctx, request)
	if len(claimed.Jobs) > 0 {
		l.once.Do(func() { time.Sleep(l.late) })
	}
	return claimed, err
}

// Another worker may have the job by then, and the queue's rate no longer counts its start.
func TestJobWhoseClaimIsAnsweredAfterItsLeaseGoesBackAndDoesNotBegin(t *testing.T) {
	for name, c := range map[string]struct{ late, releases int }{
		"before the lease ends": {late: 59},
		"when it has ended":     {late: 60, releases: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.use(&lateAnswer{Store: s.store, late: time.Duration(c.late) * time.Second})
				s.settings(func(q *sluice.Settings) { q.Lease = time.Minute })
				releases := make(chan int, 10)
				s.run(worker.Options{}, func(_ context.Context, job *worker.Job[payment]) error {
					releases <- job.Releases
					return nil
				})
				s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
				_ = s.end()
				if before := <-releases; before != c.releases || len(releases) > 0 {
					t.Errorf("the job began after it was handed back %d times, want %d; and began %d times more", before, c.releases, len(releases))
				}
			})
		})
	}
}
