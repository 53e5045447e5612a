package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/notify"
)

// NotifyTimeout is how long a receiver may take for a message.
const NotifyTimeout = notify.Timeout

// Notify delivers the messages of all receivers, until nothing more can be delivered now. It returns how many messages
// the receivers accepted. No receiver waits for another.
func (w *Watcher) Notify(ctx context.Context) (notified int, err error) {
	var all sync.WaitGroup
	counts, failed := make([]int, len(w.options.Receivers)), make([]error, len(w.options.Receivers))
	for i, receiver := range w.options.Receivers {
		all.Go(func() { counts[i], failed[i] = w.tell(ctx, receiver) })
	}
	all.Wait()
	for _, n := range counts {
		notified += n
	}
	return notified, errors.Join(failed...)
}

// Test sends a receiver a message which says that nothing is wrong, in the name of a person or program. Nothing is stored.
func Test(ctx context.Context, receiver Receiver, by string) error {
	if err := sluice.CheckGiven("receiver", receiver); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, NotifyTimeout)
	defer cancel()
	now := time.Now().UTC()
	return receiver.Notify(ctx, Message{
		ID: sluice.NewID(), Event: Fires, Rule: "test", Metric: "test", Op: ">", Value: 1, Severity: health.SeverityNote,
		Message: "a test by " + by + ": nothing is wrong", At: now, FiredAt: now,
	})
}

// tell delivers the messages of one receiver. It ends if the receiver is unreachable.
func (w *Watcher) tell(ctx context.Context, receiver Receiver) (notified int, err error) {
	if err := sluice.CheckGiven("receiver", receiver); err != nil {
		return 0, err
	}
	if err := w.alerts.SaveReceiver(ctx, receiver.Name()); err != nil {
		return 0, fmt.Errorf("register receiver %q: %w", receiver.Name(), err)
	}
	for {
		claims, err := w.claim(ctx, notify.Queue(receiver.Name()))
		if err != nil || len(claims) == 0 {
			return notified, err
		}
		settlements, done, reached := w.notifyAll(ctx, receiver, claims)
		notified += done
		// Settle the delivered messages even if ctx has ended: else they would be delivered twice.
		if err := w.settle(context.WithoutCancel(ctx), settlements); err != nil || !reached || ctx.Err() != nil {
			return notified, err
		}
	}
}

// claim claims due messages. If none is due, it only reads.
func (w *Watcher) claim(ctx context.Context, queue string) ([]*sluice.Claim, error) {
	due, err := w.store.NextDue(ctx, []string{queue})
	if err != nil {
		return nil, fmt.Errorf("look for notifications: %w", err)
	}
	if wait, waits := due[queue]; !waits || wait > 0 {
		return nil, nil
	}
	// Not ctx: if the answer to a claim is thrown away, its messages stay locked until the lease ends.
	claimed, err := w.store.Claim(context.WithoutCancel(ctx), sluice.ClaimRequest{
		Queue: queue, Limit: notify.Batch, Holder: w.options.Holder, Lease: notify.Lease, Token: sluice.NewToken(),
	})
	if err != nil {
		return nil, fmt.Errorf("claim notifications: %w", err)
	}
	return claimed.Jobs, nil
}

// settle records the deliveries. A lost claim is no error: upkeep has made its message due again.
func (w *Watcher) settle(ctx context.Context, settlements []sluice.Settlement) error {
	errs, err := w.store.Settle(ctx, settlements)
	if err != nil {
		return fmt.Errorf("settle notifications: %w", err)
	}
	var failed []error
	for i, err := range errs {
		if err != nil && !errors.Is(err, sluice.ErrLost) {
			failed = append(failed, fmt.Errorf("settle notification %s: %w", settlements[i].ID, err))
		}
	}
	return errors.Join(failed...)
}

// notifyAll delivers messages one by one. If the receiver is unreachable, it hands the rest back untried.
func (w *Watcher) notifyAll(ctx context.Context, receiver Receiver, claims []*sluice.Claim) (out []sluice.Settlement, notified int, reached bool) {
	for i, c := range claims {
		message, err := messageOf(c)
		if err != nil {
			out = append(out, w.settlement(c, sluice.EventBury, err.Error()))
			continue
		}
		err = w.notifyOne(ctx, receiver, message)
		if err == nil {
			notified++
			out = append(out, w.settlement(c, sluice.EventComplete, ""))
			continue
		}
		failure, again := w.putOff(ctx, receiver, c, message, err)
		out = append(out, failure)
		var refused *RefusedError
		if errors.As(err, &refused) {
			continue
		}
		for _, rest := range claims[i+1:] {
			back := w.settlement(rest, sluice.EventRelease, "")
			back.Delay = again
			out = append(out, back)
		}
		return out, notified, false
	}
	return out, notified, true
}

// messageOf reads the message of a job.
func messageOf(c *sluice.Claim) (Message, error) {
	var message Message
	if err := json.Unmarshal(c.Payload, &message); err != nil {
		return message, fmt.Errorf("the payload is no message of an alert: %w", err)
	}
	return message, nil
}

// settlement ends a claim by an event.
func (w *Watcher) settlement(c *sluice.Claim, by sluice.Event, cause string) sluice.Settlement {
	return sluice.Settlement{ID: c.ID, Token: c.Token, Event: by, Error: cause, Holder: w.options.Holder, Claim: c}
}

func (w *Watcher) notifyOne(ctx context.Context, receiver Receiver, message Message) error {
	ctx, cancel := context.WithTimeout(ctx, NotifyTimeout)
	defer cancel()
	return receiver.Notify(ctx, message)
}

// putOff says how a message goes on after a failure, and when to try the receiver again. A message waits by the
// settings of its queue. When it is given up, it becomes a dead letter, and putOff adds an audit entry.
func (w *Watcher) putOff(ctx context.Context, receiver Receiver, c *sluice.Claim, m Message, cause error) (sluice.Settlement, time.Duration) {
	if ctx.Err() != nil {
		return w.settlement(c, sluice.EventRelease, ""), 0 // this process ends; another process may try at once
	}
	settings := w.settingsOf(ctx, c.Queue)
	out := w.settlement(c, sluice.EventRetry, cause.Error())
	out.Delay = settings.Backoff.Delay(c.Attempts + 1)
	reason := givenUp(c, settings)
	if reason == "" {
		w.log.Emit(event.AlertNotNotified, m.Queue, "rule", m.Rule, "receiver", receiver.Name(), "error", cause, "retry_in", out.Delay)
		return out, out.Delay
	}
	entry := sluice.AuditEntry{
		Object: audit.ObjectAlert, Name: RuleName(m.Rule, m.Queue), Event: audit.EventAlertNotNotified, Actor: w.options.Holder,
		Reason: sluice.Brief(receiver.Name() + " was not told that it is " + string(m.Event) + ": " + cause.Error()),
	}
	if err := w.store.AppendAudit(ctx, []sluice.AuditEntry{entry}); err != nil {
		return out, out.Delay // the message is given up once the audit has that
	}
	w.log.Emit(event.AlertGivenUp, m.Queue, "rule", m.Rule, "receiver", receiver.Name(), "error", cause)
	dead := w.settlement(c, sluice.EventBury, cause.Error())
	dead.Reason = reason
	return dead, out.Delay
}

// givenUp returns why a message that has failed once more is given up. Empty: it is tried again. A person who requeues
// a dead letter begins a new life of the message, in which only the attempts count.
func givenUp(c *sluice.Claim, settings sluice.Settings) string {
	if c.Generation == 1 && time.Since(c.CreatedAt) >= NotificationKept {
		return "not delivered within " + sluice.FormatDuration(NotificationKept)
	}
	if end := sluice.FailureOf(c, settings, ""); end.Event == sluice.EventBury {
		return end.Reason
	}
	return ""
}

// settingsOf returns the settings of a receiver's queue, which an operator may have changed.
func (w *Watcher) settingsOf(ctx context.Context, queue string) sluice.Settings {
	stored, err := w.client.Queue(ctx, queue)
	if err != nil {
		return notify.Settings()
	}
	return stored.Settings
}
