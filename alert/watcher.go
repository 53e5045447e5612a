// Package alert evaluates alert rules, stores the alerts, and notifies receivers.
//
// Begin with [Read], which lists the rules and alerts of a store, and [SetRule], which changes a rule.
// [StartSilence] silences alerts for a while. A [Receiver] gets the messages; package webhook has one.
//
// Upkeep runs a [Watcher]. The leader of upkeep evaluates the rules, and every process notifies its own receivers.
// Each message for a receiver is a job in the receiver's queue. The name of the queue begins with "sluice.notify.". A
// process that dies between the delivery and its record delivers the message again, with the same ID.
//
// Read next: docs/guide/alerts.md.
package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/presence"
)

// Options configures a [Watcher]. The zero value works.
type Options struct {
	// Receivers get a message when an alert fires and when it is over. Default: none. The log and the audit always
	// get every change.
	Receivers []Receiver
	// Holder names the process in the audit. Default: presence.NewID.
	Holder string
	// Logger gets a line for each change. Default: slog.Default().
	Logger *slog.Logger
	// LogLimit is the most lines of an event for one queue in 10 s. Default: 10. Negative: no limit.
	LogLimit int
}

// Receiver gets the messages of alerts.
type Receiver interface {
	// Name names the receiver, the same in all processes that have it. It holds no secret.
	Name() string
	// Tell delivers one message. The Watcher ends ctx after [NotifyTimeout]. A message may come twice, with the same
	// ID. After an error, the Watcher tries again later. A [*RefusedError] says that the receiver is reachable.
	Notify(ctx context.Context, message Message) error
}

// RefusedError says that a receiver answers, but does not accept a message.
type RefusedError struct{ Answer string }

// Error returns the answer.
func (e *RefusedError) Error() string { return "refused: " + e.Answer }

// Watcher evaluates rules and notifies receivers. Evaluate and Notify may run at the same time, each once at a time.
type Watcher struct {
	store   sluice.Store
	alerts  Store
	client  *sluice.Client
	options Options
	log     *event.Log

	known  bool // the store has the receivers
	levels levels
	health healthCache
}

// New makes a Watcher of a store. It does not call the store.
func New(store sluice.Store, options Options) *Watcher {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Holder == "" {
		options.Holder = presence.NewID()
	}
	store = sluice.GivenStore(store)
	return &Watcher{
		store: store, alerts: Given(store), client: sluice.NewClient(store, sluice.ClientOptions{Logger: options.Logger}), options: options,
		log: event.NewLog(options.Logger, options.Holder, options.LogLimit),
	}
}

// Flush logs how many lines the limit left out.
func (w *Watcher) Flush() { w.log.Flush() }

// Finding is the result of evaluating a rule in a queue, or in the store.
type Finding struct {
	Target
	Reading Reading
	// Err is why there is no reading. Nil: there is one.
	Err error
	// Before is the stored alert, Alert is the new one, and Change is the change that people see. Empty: no change.
	Before Alert
	Alert  Alert
	Change Change
}

// evaluator is a store that evaluates by itself, such as one behind a server.
type evaluator interface {
	Evaluate(ctx context.Context) ([]Finding, error)
}

// Read evaluates all rules, and changes nothing. If it cannot read a figure, it still reads the others.
func (w *Watcher) Read(ctx context.Context) ([]Finding, error) {
	if other, is := sluice.StoreAs[evaluator](w.store); is {
		return other.Evaluate(ctx)
	}
	read, err := w.read(ctx)
	return read.found, err
}

// readings are the rules, alerts and queues of a store, the findings about them, and how many jobs the queues have.
type readings struct {
	book   Book
	queues []sluice.Queue
	found  []Finding
	meter  *meter
}

func (w *Watcher) read(ctx context.Context) (readings, error) {
	book, err := Read(ctx, w.store)
	if err != nil {
		return readings{}, fmt.Errorf("read rules: %w", err)
	}
	queues, err := w.client.Queues(ctx, sluice.QueueFilter{})
	if err != nil {
		return readings{}, fmt.Errorf("read queues: %w", err)
	}
	targets := Targets(book.Rules, queues)
	meter := newMeter(w, book, targets)
	found := make([]Finding, 0, len(targets))
	for _, target := range targets {
		f := Finding{Target: target, Before: stored(book.Alerts, target.Rule.Name, target.Queue.Name)}
		f.Reading, f.Err = meter.read(ctx, target)
		if f.Err != nil {
			f.Reading = Reading{Unknown: true}
		}
		hidden := slices.ContainsFunc(book.Silences, func(s Silence) bool { return s.Hides(target.Rule.Name, target.Queue.Name, book.Now) })
		f.Alert, f.Change = f.Before.Next(target.Rule, target.Threshold, f.Reading, hidden, book.Now)
		found = append(found, f)
	}
	return readings{book, queues, found, meter}, ctx.Err()
}

// stored returns the stored alert, or a new one.
func stored(alerts []Alert, rule, queue string) Alert {
	for _, a := range alerts {
		if a.Rule == rule && a.Queue == queue {
			return a
		}
	}
	return Alert{Rule: rule, Queue: queue}
}

// Evaluate evaluates all rules, stores and logs the changes, and queues a message for each receiver. It returns how
// many changes people see.
//
// If another process has looked in the meantime, Evaluate changes nothing. The error is from unreadable figures, or
// from the store.
func (w *Watcher) Evaluate(ctx context.Context) (changes int, err error) {
	if err := w.register(ctx); err != nil {
		return 0, err
	}
	read, err := w.read(ctx)
	if err != nil {
		return 0, err
	}
	book, found := read.book, append(read.found, withdrawn(read.found, read.book)...)
	var failed []error
	round := Evaluation{}
	for _, f := range found {
		if f.Err != nil {
			failed = append(failed, fmt.Errorf("alert %s: %w", f.Alert.Name(), f.Err))
		}
		if f.matters() {
			round.Alerts = append(round.Alerts, f.Alert)
		}
		if f.Change == "" {
			continue
		}
		message := f.Alert.Message(f.Rule, f.Change, book.Now)
		round.Entries = append(round.Entries, message.Entry(w.options.Holder))
		if f.Change.Reaches(f.Before) {
			round.Messages = append(round.Messages, message)
		}
	}
	if len(round.Alerts) > 0 {
		switch err := w.alerts.SaveAlerts(ctx, round); {
		case errors.Is(err, sluice.ErrConflict):
			return 0, nil // another process looks, and notifies
		case err != nil:
			return 0, fmt.Errorf("save alerts: %w", err)
		}
	}
	w.logChange(found)
	if err := w.levels.keep(ctx, w.options.Holder, read.meter, read.queues); err != nil {
		failed = append(failed, fmt.Errorf("keep how much waits: %w", err))
	}
	if err := w.forgetReceivers(ctx, read.queues, book.Receivers); err != nil {
		failed = append(failed, err)
	}
	return len(round.Entries), errors.Join(failed...)
}

// matters reports whether Evaluate stores a finding. The rule on missing upkeep stores each finding, because it shows
// when upkeep looked last.
func (f Finding) matters() bool {
	if f.Alert.State == Inactive && f.Before.State != Pending && f.Change == "" {
		return f.Rule.Metric == MetricUpkeepMissing
	}
	return f.Alert != f.Before
}

// withdrawn returns the stored active alerts that no rule evaluates any more.
func withdrawn(found []Finding, book Book) []Finding {
	var out []Finding
	for _, a := range book.Alerts {
		looked := slices.ContainsFunc(found, func(f Finding) bool { return f.Alert.Rule == a.Rule && f.Alert.Queue == a.Queue })
		if looked || a.State == Inactive {
			continue
		}
		f := Finding{Before: a}
		f.Alert, f.Change = a.Withdraw(book.Now)
		f.Rule = Rule{Name: a.Rule, Queue: a.Queue, Severity: a.Severity, Summary: "the rule is no longer looked at"}
		if i := slices.IndexFunc(book.Rules, func(r Rule) bool { return r.Name == a.Rule }); i >= 0 {
			f.Rule = book.Rules[i]
		}
		out = append(out, f)
	}
	return out
}

func (w *Watcher) logChange(found []Finding) {
	events := map[Change]*event.Event{
		Fires: event.AlertFiring, Resolves: event.AlertResolved, Hides: event.AlertSilenced,
	}
	for _, f := range found {
		if f.Change != "" {
			a := f.Alert
			w.log.Emit(events[f.Change], a.Queue, "rule", a.Rule, "severity", string(a.Severity), "value", a.Value, "threshold", a.Threshold,
				"message", f.Rule.Summary)
		}
	}
}

// register stores the receivers before the first finding, so that they miss no message.
func (w *Watcher) register(ctx context.Context) error {
	if w.known {
		return nil
	}
	for _, r := range w.options.Receivers {
		if err := sluice.CheckGiven("receiver", r); err != nil {
			return err
		}
		if err := w.alerts.SaveReceiver(ctx, r.Name()); err != nil {
			return fmt.Errorf("register receiver %q: %w", r.Name(), err)
		}
	}
	w.known = true
	return nil
}
