package alert

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of alerts: rules, alerts, silences and receivers. SQLite, PostgreSQL and memory implement it
// beside sluice.Store.
type Store interface {
	// AlertBook reads all stored data of alerts. Rules has no presets.
	AlertBook(ctx context.Context) (Book, error)
	// SaveAlertRule stores a rule by its name and queue, by the rule of SaveQueue of [sluice.Store].
	SaveAlertRule(ctx context.Context, rule Rule, act sluice.Act) (Rule, error)
	// DeleteAlertRule deletes a stored rule. An unknown rule is an ErrNotFound.
	DeleteAlertRule(ctx context.Context, name, queue string, act sluice.Act) error
	// SaveAlerts stores one evaluation in a transaction: alerts, audit entries, and for each message one job in the
	// queue of each known receiver. It makes a missing queue of a receiver, whatever package admission allows. If an
	// alert has another version than the stored one, another process has evaluated, and the error is an ErrConflict.
	//
	// SaveAlerts also deletes silences that are over, and receivers without a sign for ReceiverKept. The Watcher then
	// empties and deletes their queues.
	SaveAlerts(ctx context.Context, round Evaluation) error
	// SaveSilence stores a silence that begins now, and fills in Until. The same ID again changes nothing.
	SaveSilence(ctx context.Context, silence Silence, act sluice.Act) (Silence, error)
	// EndSilence ends a silence early. A silence that is unknown or over is an ErrNotFound.
	EndSilence(ctx context.Context, id sluice.ID, act sluice.Act) error
	// SaveReceiver stores a receiver, and that a process asks for its messages now. The SQL stores write this at most
	// once a minute.
	SaveReceiver(ctx context.Context, name string) error
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without alerts, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no alerts")
	if err != nil {
		return missing{err}
	}
	return port
}

// ReceiverKept is how long the store keeps a receiver that no process asks for any more. NotificationKept is how long the
// Watcher tries to deliver a message. Then the message is a dead letter in the receiver's queue.
const (
	ReceiverKept     = 7 * 24 * time.Hour
	NotificationKept = 7 * 24 * time.Hour
)

// Book is all stored data of alerts.
type Book struct {
	// Rules are sorted by name and queue. [Read] adds the presets in effect.
	Rules []Rule
	// Alerts are sorted by rule and queue. An alert that was never pending is missing.
	Alerts []Alert
	// Silences are the silences that are not over, the next to end first.
	Silences []Silence
	// Receivers are sorted by name.
	Receivers []ReceiverStatus
	// Now is the store's clock.
	Now time.Time
}

// ReceiverStatus is a receiver as the store knows it.
type ReceiverStatus struct {
	// Name names the receiver.
	Name string `json:"name"`
	// Queue is the receiver's queue, in which each message is a job. The first message makes the queue.
	Queue string `json:"queue"`
	// Seen is when a process last asked for the receiver's messages.
	Seen time.Time `json:"seen"`
	// Waiting counts undelivered messages, at most [sluice.DepthLimit]. It leaves out dead letters. Oldest is since
	// when the first message waits, and Error the result of its last try.
	Waiting int       `json:"waiting"`
	Oldest  time.Time `json:"oldest,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// Evaluation is the result of evaluating all rules once.
type Evaluation struct {
	// Alerts are the changed alerts, each with the version with which it was read.
	Alerts []Alert
	// Messages are for every receiver, and Entries for the audit.
	Messages []Message
	Entries  []sluice.AuditEntry
}

// Target is a rule and the queue in which it is evaluated.
type Target struct {
	Rule Rule
	// Queue has no name if the rule is about the store.
	Queue sluice.Queue
	// Threshold is the rule's threshold in the queue.
	Threshold float64
}

// Targets lists the evaluations: each rule in the queues that it covers. The rule of one queue replaces there the
// rule of all queues. Disabled rules are left out, and so are internal queues: an alert about undelivered messages would
// make more of them.
func Targets(rules []Rule, queues []sluice.Queue) []Target {
	own := make(map[string]bool)
	for _, r := range rules {
		if r.Queue != "" {
			own[r.Object()] = true
		}
	}
	var out []Target
	for _, r := range rules {
		metric, err := MetricNamed(r.Metric)
		if err != nil || r.Disabled {
			continue // a newer program may know the metric
		}
		if !metric.OfQueue {
			out = append(out, Target{Rule: r, Threshold: r.Threshold})
			continue
		}
		for _, q := range queues {
			if sluice.IsInternalQueue(q.Name) {
				continue
			}
			if r.Queue == q.Name || r.Queue == "" && !own[RuleName(r.Name, q.Name)] && r.Covers.Covers(q) {
				out = append(out, Target{Rule: r, Queue: q, Threshold: r.ThresholdIn(q)})
			}
		}
	}
	return out
}
