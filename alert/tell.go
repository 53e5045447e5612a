package alert

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/event"
)

// TellTimeout is how long a receiver may take for a message.
const TellTimeout = 10 * time.Second

const (
	// tellBatch is how many notices of a receiver are taken at once. tellHold is for how long no other process gets
	// them.
	tellBatch = 10
	tellHold  = (tellBatch + 2) * TellTimeout
	// firstAgain is the first wait before the next try, and lastAgain the longest.
	firstAgain = 2 * time.Second
	lastAgain  = 5 * time.Minute
)

// Tell delivers the notices of all receivers, until nothing more can be delivered now. It returns how many messages
// the receivers accepted. No receiver waits for another.
func (w *Watcher) Tell(ctx context.Context) (told int, err error) {
	var all sync.WaitGroup
	counts, failed := make([]int, len(w.options.Receivers)), make([]error, len(w.options.Receivers))
	for i, receiver := range w.options.Receivers {
		all.Go(func() { counts[i], failed[i] = w.tell(ctx, receiver) })
	}
	all.Wait()
	for _, n := range counts {
		told += n
	}
	return told, errors.Join(failed...)
}

// tell delivers the notices of one receiver. It ends if the receiver is unreachable.
func (w *Watcher) tell(ctx context.Context, receiver Receiver) (told int, err error) {
	if err := sluice.CheckGiven("receiver", receiver); err != nil {
		return 0, err
	}
	for {
		notices, err := w.alerts.TakeNotices(ctx, receiver.Name(), tellBatch, tellHold)
		if err != nil || len(notices) == 0 {
			return told, err
		}
		results, done, reached := w.tellAll(ctx, receiver, notices)
		told += done
		// Settle the delivered notices even if ctx has ended: else they would be delivered twice.
		if err := w.alerts.SettleNotices(context.WithoutCancel(ctx), results); err != nil || !reached || ctx.Err() != nil {
			return told, err
		}
	}
}

// tellAll delivers notices one by one. If the receiver is unreachable, it puts off the rest untried.
func (w *Watcher) tellAll(ctx context.Context, receiver Receiver, notices []Notice) (results []NoticeResult, told int, reached bool) {
	for i, n := range notices {
		err := w.tellOne(ctx, receiver, n.Message)
		result := NoticeResult{Seq: n.Seq, Done: err == nil}
		var refused *RefusedError
		if err == nil {
			told++
			results = append(results, result)
			continue
		}
		result = w.putOff(ctx, n, err)
		results = append(results, result)
		if errors.As(err, &refused) {
			continue
		}
		for _, rest := range notices[i+1:] {
			results = append(results, NoticeResult{Seq: rest.Seq, Again: result.Again, Error: rest.Error})
		}
		return results, told, false
	}
	return results, told, true
}

func (w *Watcher) tellOne(ctx context.Context, receiver Receiver, message Message) error {
	ctx, cancel := context.WithTimeout(ctx, TellTimeout)
	defer cancel()
	return receiver.Tell(ctx, message)
}

// putOff says when to try a notice again: later each time. After 7 days it gives up, and adds an audit entry.
func (w *Watcher) putOff(ctx context.Context, n Notice, cause error) NoticeResult {
	result := NoticeResult{Seq: n.Seq, Again: againAfter(n.Attempts), Error: cause.Error()}
	if ctx.Err() != nil {
		result.Again = 0 // this process ends; another process may try at once
		return result
	}
	m := n.Message
	if time.Since(n.CreatedAt) < NoticeKept {
		w.log.Tell(event.AlertUntold, m.Queue, "rule", m.Rule, "receiver", n.Receiver, "error", cause, "retry_in", result.Again)
		return result
	}
	entry := sluice.AuditEntry{
		Object: audit.ObjectAlert, Name: RuleName(m.Rule, m.Queue), Event: audit.EventAlertUntold, Actor: w.options.Holder,
		Reason: sluice.Brief(n.Receiver + " was not told that it is " + string(m.Event) + ": " + cause.Error()),
	}
	if err := w.store.AppendAudit(ctx, []sluice.AuditEntry{entry}); err != nil {
		return result // the notice is given up once the audit has that
	}
	w.log.Tell(event.AlertGivenUp, m.Queue, "rule", m.Rule, "receiver", n.Receiver, "error", cause)
	result.Done = true
	return result
}

// againAfter returns the wait after this many attempts. It doubles each time, with a random part so that processes
// do not return together.
func againAfter(attempts int) time.Duration {
	wait := lastAgain
	if attempts < 10 {
		wait = min(lastAgain, firstAgain<<max(0, attempts-1))
	}
	return wait*3/4 + rand.N(wait/2)
}
