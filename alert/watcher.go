// Package alert looks at the rules of alerts, stores what it finds, and tells receivers: those of package
// webhook, or whatever else is a Receiver. Upkeep runs it; whoever leads there looks, and every process tells the receivers that it knows. Nothing that
// was found is lost: what a receiver was not told yet is in the store.
package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/presence"
)

// Options adjust a Watcher. The zero value works.
type Options struct {
	// Receivers are told of what fires, and when it is over. Default: none. The log and the audit are always told.
	Receivers []Receiver
	// Holder is who looks, for the audit. Default: presence.NewID.
	Holder string
	// Logger gets a line for each change. Default: slog.Default.
	Logger *slog.Logger
	// LogLimit is how many lines of an event are logged for one queue within 10 s. Default 10, negative: all.
	LogLimit int
}

// Receiver is told of alerts.
type Receiver interface {
	// Name tells the receiver from every other, in all processes that know it. It holds no secret.
	Name() string
	// Tell tells it one message, within a deadline of its own. A message may come twice, with the same id. An error means
	// that it is to be told again; one that is a *RefusedError, that it can be reached all the same.
	Tell(ctx context.Context, message Message) error
}

// RefusedError is the error of a receiver that answers, and does not take a message.
type RefusedError struct{ Answer string }

// Error says what it answered.
func (e *RefusedError) Error() string { return "refused: " + e.Answer }

// Watcher looks at rules and tells receivers. Look and Tell may run beside each other, each once at a time.
type Watcher struct {
	store   sluice.Store
	alerts  Store
	client  *sluice.Client
	options Options
	log     *event.Log

	known  bool // the store knows the receivers
	health healthCache
}

// New makes a watcher of a store. It does no reading or writing itself.
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

// Flush tells the log of lines that were left out.
func (w *Watcher) Flush() { w.log.Flush() }

// Finding is what a look found of a rule in a queue, or in the store.
type Finding struct {
	Target
	Reading Reading
	// Err is why there is no reading.
	Err error
	// Before is the alert as it is stored, Alert as it is now, and Change what people are told of that.
	Before Alert
	Alert  Alert
	Change Change
}

// Read looks at all rules, and changes nothing. A figure that cannot be read does not keep the others from being looked at.
func (w *Watcher) Read(ctx context.Context) ([]Finding, error) {
	found, _, err := w.read(ctx)
	return found, err
}

func (w *Watcher) read(ctx context.Context) ([]Finding, Book, error) {
	book, err := Read(ctx, w.store)
	if err != nil {
		return nil, book, fmt.Errorf("read rules: %w", err)
	}
	queues, err := w.client.Queues(ctx, sluice.QueueFilter{})
	if err != nil {
		return nil, book, fmt.Errorf("read queues: %w", err)
	}
	targets := Targets(book.Rules, queues)
	figures := newFigures(w, book, targets)
	found := make([]Finding, 0, len(targets))
	for _, target := range targets {
		f := Finding{Target: target, Before: stored(book.Alerts, target.Rule.Name, target.Queue.Name)}
		f.Reading, f.Err = figures.read(ctx, target)
		if f.Err != nil {
			f.Reading = Reading{Unknown: true}
		}
		hidden := slices.ContainsFunc(book.Silences, func(s Silence) bool { return s.Hides(target.Rule.Name, target.Queue.Name, book.Now) })
		f.Alert, f.Change = f.Before.Next(target.Rule, target.Threshold, f.Reading, hidden, book.Now)
		found = append(found, f)
	}
	return found, book, ctx.Err()
}

// stored gives an alert as it is stored, or a new one.
func stored(alerts []Alert, rule, queue string) Alert {
	for _, a := range alerts {
		if a.Rule == rule && a.Queue == queue {
			return a
		}
	}
	return Alert{Rule: rule, Queue: queue}
}

// Look looks at all rules, stores what it finds, notes it for all receivers and logs it. It returns how many changes people
// are told of. If somebody else has looked in between it changes nothing. The error is that of the figures that could not be
// read, or of the store.
func (w *Watcher) Look(ctx context.Context) (changes int, err error) {
	if err := w.register(ctx); err != nil {
		return 0, err
	}
	found, book, err := w.read(ctx)
	if err != nil {
		return 0, err
	}
	found = append(found, withdrawn(found, book)...)
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
			return 0, nil // another one looks, and tells
		case err != nil:
			return 0, fmt.Errorf("save alerts: %w", err)
		}
	}
	w.tellLog(found)
	return len(round.Entries), errors.Join(failed...)
}

// matters reports whether a finding is to be stored. When upkeep was seen last is stored by the rule that tells of it.
func (f Finding) matters() bool {
	if f.Alert.State == Inactive && f.Before.State != Pending && f.Change == "" {
		return f.Rule.Metric == MetricUpkeepMissing
	}
	return f.Alert != f.Before
}

// withdrawn are alerts that are stored, not inactive, and no longer looked at.
func withdrawn(found []Finding, book Book) []Finding {
	var out []Finding
	for _, a := range book.Alerts {
		looked := slices.ContainsFunc(found, func(f Finding) bool { return f.Alert.Rule == a.Rule && f.Alert.Queue == a.Queue })
		if looked || a.State == Inactive {
			continue
		}
		f := Finding{Before: a}
		f.Alert, f.Change = a.Withdraw(book.Now)
		f.Rule = Rule{Name: a.Rule, Queue: a.Queue, Severity: a.Severity, Says: "the rule is no longer looked at"}
		if i := slices.IndexFunc(book.Rules, func(r Rule) bool { return r.Name == a.Rule }); i >= 0 {
			f.Rule = book.Rules[i]
		}
		out = append(out, f)
	}
	return out
}

func (w *Watcher) tellLog(found []Finding) {
	events := map[Change]*event.Event{
		Fires: event.AlertFiring, Resolves: event.AlertResolved, Hides: event.AlertSilenced,
	}
	for _, f := range found {
		if f.Change != "" {
			a := f.Alert
			w.log.Tell(events[f.Change], a.Queue, "rule", a.Rule, "severity", string(a.Severity), "value", a.Value, "threshold", a.Threshold,
				"message", f.Rule.Says)
		}
	}
}

// register makes the receivers known before anything can be found, so that nothing passes them by.
func (w *Watcher) register(ctx context.Context) error {
	if w.known {
		return nil
	}
	for _, r := range w.options.Receivers {
		if err := sluice.CheckGiven("receiver", r); err != nil {
			return err
		}
		if _, err := w.alerts.TakeNotices(ctx, r.Name(), 0, time.Second); err != nil {
			return fmt.Errorf("register receiver %q: %w", r.Name(), err)
		}
	}
	w.known = true
	return nil
}
