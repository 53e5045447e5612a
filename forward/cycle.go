package forward

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/step"
)

// ahead is how long before their due time jobs are forwarded: the centre keeps them until then.
const ahead = 200 * 365 * 24 * time.Hour

// Sent counts the results of forwarding.
type Sent struct {
	// Claimed is how many jobs were claimed locally for the first time.
	Claimed int `json:"claimed"`
	// Forwarded jobs are now at the centre. Duplicates were not stored there, because another job holds their
	// key. Refused jobs broke a rule of the centre and are dead letters locally.
	Forwarded  int `json:"forwarded"`
	Duplicates int `json:"duplicates"`
	Refused    int `json:"refused"`
	// Uncertain jobs may have been at the centre and be deleted there. A person decides about them.
	Uncertain int `json:"uncertain"`
}

func (s *Sent) add(other Sent) {
	s.Claimed += other.Claimed
	s.Forwarded += other.Forwarded
	s.Duplicates += other.Duplicates
	s.Refused += other.Refused
	s.Uncertain += other.Uncertain
}

// shore is the state of the centre at the beginning of a cycle.
type shore struct {
	asked time.Time     // when the centre was asked, by this process's clock
	now   time.Time     // by the centre's clock
	keeps time.Duration // the least time that the centre keeps a finished job
}

// cycle sends jobs that were sent without an answer, and then waiting jobs. The centre is asked first, so that
// an unreachable centre causes no claims. When more ends, cycle claims nothing more, but sends the jobs that it has.
func (f *Forwarder) cycle(more, ctx context.Context, l *servedQueue) (sent Sent, err error) {
	ctx, end := step.Begin(ctx, f.local, step.Step{Name: step.Forward, Queue: l.queue})
	defer func() { end(step.End{Jobs: sent.Claimed, Err: err}) }()
	at, err := f.land(ctx, l.queue)
	if err != nil {
		return sent, fmt.Errorf("look at the centre %s: %w", f.options.Centre, err)
	}
	l.more = false
	if !f.ear.Quiesced() {
		if err := f.takeOver(ctx, l); err != nil {
			return sent, err
		}
	}
	if again := l.holding(); len(again) > 0 {
		if err := f.send(ctx, l, at, again, &sent); err != nil {
			return sent, err
		}
	}
	if err := f.cancelStray(ctx, l); err != nil {
		return sent, err
	}
	if err := more.Err(); err != nil {
		return sent, err
	}
	fresh, err := f.take(ctx, l, at)
	if err != nil || len(fresh) == 0 {
		return sent, err
	}
	sent.Claimed = len(fresh)
	err = f.send(ctx, l, at, fresh, &sent)
	f.log.Emit(event.Forwarded, l.queue, "claimed", sent.Claimed, "forwarded", sent.Forwarded,
		"duplicates", sent.Duplicates, "refused", sent.Refused, "uncertain", sent.Uncertain)
	return sent, err
}

// land reads the centre's clock and how long the centre keeps the history of a queue. If the queue is missing,
// land creates it with the default settings. If the centre requires declared queues, the jobs stay local until
// somebody declares it.
func (f *Forwarder) land(ctx context.Context, queue string) (at shore, err error) {
	name, asked := []string{queue}, time.Now()
	err = f.call(ctx, func(ctx context.Context) error {
		queues, err := f.centre.Queues(ctx, sluice.QueueFilter{Names: name})
		if err != nil {
			return err
		}
		if len(queues) == 0 {
			refused, err := f.centre.Admit(ctx, name, sluice.Act{By: f.holder.ID, Reason: "jobs are forwarded to it", ID: sluice.NewID()})
			if err = errors.Join(append(refused, err)...); err != nil {
				return err
			}
			if queues, err = f.centre.Queues(ctx, sluice.QueueFilter{Names: name}); err != nil {
				return err
			}
		}
		if len(queues) == 0 {
			return fmt.Errorf("queue %q of the centre was deleted: %w", queue, sluice.ErrNotFound)
		}
		at = shoreOf(queues[0])
		at.asked = asked
		return nil
	})
	return at, err
}

func shoreOf(q sluice.Queue) shore {
	at := shore{now: q.Now, keeps: math.MaxInt64}
	for _, keep := range []time.Duration{q.Settings.KeepCompleted, q.Settings.KeepCancelled, q.Settings.KeepDead} {
		if keep > 0 { // zero keeps for ever
			at.keeps = min(at.keeps, keep)
		}
	}
	return at
}

// take claims jobs, due or not, and records that they are about to be sent. From then on, only the centre knows
// whether it has them.
func (f *Forwarder) take(ctx context.Context, l *servedQueue, at shore) ([]*hold, error) {
	settings, err := f.live.Queue(ctx, l.queue)
	if err != nil {
		return nil, fmt.Errorf("read local settings: %w", err)
	}
	if !f.ear.Begin() {
		return nil, nil
	}
	defer f.ear.End()
	var claimed sluice.Claimed
	err = f.call(ctx, func(ctx context.Context) (err error) {
		claimed, err = f.local.Claim(ctx, sluice.ClaimRequest{
			Queue: l.queue, Limit: f.options.Batch, Holder: f.holder.ID, Lease: f.options.Lease, Token: sluice.NewToken(),
			Ageing: settings.Settings.Ageing, ClaimAhead: ahead, Engine: settings.Settings.Engine,
		})
		return err
	})
	if err != nil || len(claimed.Jobs) == 0 {
		return nil, wrap("claim", err)
	}
	intents := make([]engine.Intent, len(claimed.Jobs))
	for i, c := range claimed.Jobs {
		c.Ref, c.Engine = refAt(at.now), f.engine()
		intents[i] = engine.Intent{ID: c.ID, Token: c.Token, Ref: c.Ref, Engine: c.Engine, Lease: f.options.Lease}
	}
	var errs []error
	err = f.call(ctx, func(ctx context.Context) (err error) {
		errs, err = engine.Given(f.local).RecordIntent(ctx, intents)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("note %d jobs that are to be sent: %w", len(intents), err), f.handBack(ctx, l, claimed.Jobs))
	}
	var holds []*hold
	for i, c := range claimed.Jobs {
		if errs[i] == nil { // else the job was cancelled meanwhile
			holds = append(holds, &hold{claim: c})
		}
	}
	l.hold(holds)
	return holds, nil
}

// refAt returns the ref of a job to send: the earliest time of its first request, by the centre's clock.
func refAt(now time.Time) string { return "since " + now.UTC().Format(time.RFC3339Nano) }

// sentSince reads a ref; an unreadable ref gives the zero time.
func sentSince(ref string) time.Time {
	text, _ := strings.CutPrefix(ref, "since ")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// takeOver takes over jobs that dead forwarders were sending, at most one batch.
func (f *Forwarder) takeOver(ctx context.Context, l *servedQueue) error {
	late, err := f.overdue(ctx, l)
	if err != nil || len(late) == 0 {
		return wrap("look for jobs that were on their way", err)
	}
	renewals := make([]sluice.Renewal, len(late))
	for i, c := range late {
		renewals[i] = sluice.Renewal{ID: c.ID, Token: c.Token, Lease: f.options.Lease, Queue: c.Queue}
	}
	var lost []sluice.ID
	err = f.call(ctx, func(ctx context.Context) (err error) {
		lost, err = f.local.Renew(ctx, renewals)
		return err
	})
	if err != nil {
		return fmt.Errorf("take over jobs that were on their way: %w", err)
	}
	l.more = true
	var holds []*hold
	for _, c := range late {
		if !slices.Contains(lost, c.ID) {
			holds = append(holds, &hold{claim: c, doubtful: true})
		}
	}
	l.hold(holds)
	return nil
}

// overdue lists jobs that dead forwarders to this centre were sending. Those to another centre may be any number, so
// they are read past.
func (f *Forwarder) overdue(ctx context.Context, l *servedQueue) (late []*sluice.Claim, err error) {
	others := 0
	filter := engine.DispatchFilter{Queue: l.queue, Overdue: true, Limit: f.options.Batch}
	for more := true; more && len(late) == 0; {
		err := f.call(ctx, func(ctx context.Context) (err error) {
			late, err = engine.Given(f.local).Dispatches(ctx, filter)
			return err
		})
		if err != nil {
			return nil, err
		}
		if more = len(late) == filter.Limit; more {
			filter.After = late[len(late)-1].ID
		}
		late = slices.DeleteFunc(late, func(c *sluice.Claim) bool {
			if c.Engine != f.engine() {
				others++
			}
			return c.Engine != f.engine() || l.holds(c.ID)
		})
	}
	if others > 0 && time.Since(l.othersAt) > time.Minute {
		l.othersAt = time.Now()
		f.log.Emit(event.OtherCentre, l.queue, "jobs", others, "centre", f.options.Centre)
	}
	return late, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
