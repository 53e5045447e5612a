package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/presence"
)

const (
	// beatInterval is how often the forwarder writes its heartbeat to the local store.
	beatInterval = 5 * time.Second
	// leaseRounds is how often within a lease the claims of jobs being sent are renewed.
	leaseRounds = 6
	// strayInterval is how often the forwarder looks for jobs that were cancelled while being sent.
	strayInterval = 10 * time.Second
	// straySlice is the most such jobs handled at once.
	straySlice = 500
)

// keep renews the claims of jobs being sent and writes heartbeats, until ctx ends.
func (f *Forwarder) keep(ctx context.Context) {
	ticker := time.NewTicker(max(min(f.options.Lease/leaseRounds, beatInterval), 10*time.Millisecond))
	defer ticker.Stop()
	var beaten time.Time
	for {
		held := f.renew(ctx)
		if time.Since(beaten) >= beatInterval {
			beaten = time.Now()
			f.beat(ctx, held)
		}
		select {
		case <-ctx.Done():
			return
		case <-f.ear.Changed():
			beaten = time.Time{} // others wait to see the new mode
		case <-ticker.C:
		}
	}
}

func (f *Forwarder) renew(ctx context.Context) (held int) {
	var renewals []sluice.Renewal
	for _, l := range f.serving {
		for _, h := range l.holding() {
			renewals = append(renewals, sluice.Renewal{ID: h.claim.ID, Token: h.claim.Token, Lease: f.options.Lease, Queue: h.claim.Queue})
		}
	}
	if len(renewals) == 0 {
		return 0
	}
	var lost []sluice.ID
	err := f.call(ctx, func(ctx context.Context) (err error) {
		lost, err = f.local.Renew(ctx, renewals)
		return err
	})
	if err != nil && ctx.Err() == nil {
		f.log.Emit(event.NotRenewed, "", "jobs", len(renewals), "error", err)
	}
	for _, id := range lost { // settled meanwhile, or cancelled; cancelStray then cancels the job at the centre too
		for _, l := range f.serving {
			l.let(id)
		}
	}
	return len(renewals) - len(lost)
}

func (f *Forwarder) beat(ctx context.Context, held int) {
	holder := f.holder
	holder.Busy, holder.Mode = held, f.ear.Mode()
	err := f.call(ctx, func(ctx context.Context) error {
		told, err := presence.Given(f.local).Heartbeat(ctx, holder)
		if err == nil {
			f.ear.Hear(told)
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		f.log.Emit(event.HeartbeatFailed, "", "error", err)
	}
}

// letGo hands back the jobs that were not sent. The centre may have the others, so the next forwarder asks for them.
func (f *Forwarder) letGo(ctx context.Context) {
	for _, l := range f.serving {
		if err := f.handBack(ctx, l, l.unsent()); err != nil {
			f.log.Emit(event.NotForwarded, l.queue, "error", err)
		}
	}
}

// handBack releases claimed jobs that were not sent, also after ctx has ended. No attempt is counted.
func (f *Forwarder) handBack(ctx context.Context, l *servedQueue, claims []*sluice.Claim) error {
	settlements := make([]sluice.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = settlementOf(&hold{claim: c}, f.holder.ID)
		settlements[i].Event, settlements[i].Reason = sluice.EventRelease, "not sent to "+f.options.Centre
		f.log.EmitJob(event.JobReleased, c, "reason", settlements[i].Reason)
	}
	return f.settle(context.WithoutCancel(ctx), l, settlements)
}

func (f *Forwarder) leave(ctx context.Context) {
	err := f.call(context.WithoutCancel(ctx), func(ctx context.Context) error { return presence.Given(f.local).Deregister(ctx, f.holder.ID) })
	if err != nil {
		f.log.Emit(event.NotForgotten, "", "error", err)
	}
}

// watch starts a cycle at once when jobs come in.
func (f *Forwarder) watch(ctx context.Context) {
	err := f.local.Watch(ctx, func(signal sluice.Signal) {
		for _, l := range f.serving {
			if signal.Cancelled.IsZero() && (signal.Queue == "" || signal.Queue == l.queue) {
				l.nudge()
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		f.log.Emit(event.SignalsLost, "", "error", err)
	}
}

// cancelStray cancels jobs at the centre that were cancelled locally while being sent. cancelStray waits until
// no call that sends them can still be under way. A centre that refuses to cancel may take jobs all the same, so a refusal
// is only noted.
func (f *Forwarder) cancelStray(ctx context.Context, l *servedQueue) error {
	if time.Now().Before(l.strayAt) {
		return nil
	}
	strays, err := f.strays(ctx, l)
	if err != nil {
		return fmt.Errorf("look for cancelled jobs that were on their way: %w", err)
	}
	l.strayAt, l.refused = time.Now().Add(strayInterval), nil
	if len(strays) == 0 {
		return nil
	}
	ids := make([]sluice.ID, len(strays))
	for i, run := range strays {
		ids[i] = run.JobID
	}
	var errs []error
	err = f.call(ctx, func(ctx context.Context) (err error) {
		errs, err = f.centre.Cancel(ctx, ids, sluice.Act{By: f.holder.ID, Reason: "cancelled where it was enqueued", ID: sluice.NewID()})
		return err
	})
	if err != nil {
		err = fmt.Errorf("cancel %d jobs at %s, which were cancelled here: %w", len(ids), f.options.Centre, err)
		if unanswered(err) {
			return err
		}
		l.refused = err
		f.log.Emit(event.NotForwarded, l.queue, "error", err)
		return nil
	}
	return f.call(ctx, func(ctx context.Context) error {
		seen := strays[:0]
		for i, err := range errs { // the job never arrived, or has ended there
			if err == nil || errors.Is(err, sluice.ErrNotFound) || errors.Is(err, sluice.ErrNotAllowed) {
				seen = append(seen, strays[i])
			}
		}
		err := engine.Given(f.local).ForgetOrphanRuns(ctx, seen)
		if err == nil && len(seen) > 0 {
			l.more, l.strayAt = true, time.Time{}
		}
		return wrap("forget cancelled jobs", err)
	})
}

// strays lists jobs that were cancelled locally while this centre's forwarders sent them, at most straySlice. Those of
// another centre may be any number, so they are read past.
func (f *Forwarder) strays(ctx context.Context, l *servedQueue) (strays []engine.OrphanRun, err error) {
	var now time.Time
	err = f.call(ctx, func(ctx context.Context) (err error) {
		now, err = f.local.Now(ctx)
		return err
	})
	after := engine.OrphanRun{}
	for more := true; err == nil && more && len(strays) == 0; {
		err = f.call(ctx, func(ctx context.Context) (err error) {
			strays, err = engine.Given(f.local).OrphanRuns(ctx, l.queue, after, straySlice)
			return err
		})
		if more = len(strays) == straySlice; more {
			after = strays[straySlice-1]
		}
		strays = slices.DeleteFunc(strays, func(run engine.OrphanRun) bool {
			return run.Engine != f.engine() || now.Sub(run.CancelledAt) < 2*f.options.CallTimeout
		})
	}
	return strays, err
}
