package alert

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of alerts: it keeps rules, alerts, silences, and the notices that receivers do not have yet. SQLite,
// PostgreSQL and memory implement it beside their sluice.Store.
type Store interface {
	// AlertBook reads all that is stored of alerts: Rules are those that somebody stored, without the presets.
	AlertBook(ctx context.Context) (Book, error)
	// SaveAlertRule stores a rule, by its name and queue, by the rule of SaveQueue.
	SaveAlertRule(ctx context.Context, rule Rule, act sluice.Act) (Rule, error)
	// DeleteAlertRule forgets what somebody stored of a rule. An unknown one is an ErrNotFound.
	DeleteAlertRule(ctx context.Context, name, queue string, act sluice.Act) error
	// SaveAlerts stores one evaluation in a transaction: alerts, audit entries, and each message once for each known
	// receiver. It is an ErrConflict where an alert has another version than the stored one: somebody else has evaluated in
	// between. It also forgets silences that are over, and receivers that were not seen for ReceiverKept, with their notices.
	SaveAlerts(ctx context.Context, round Evaluation) error
	// SaveSilence stores a silence that begins now; the same id again changes nothing. Until is filled in.
	SaveSilence(ctx context.Context, silence Silence, act sluice.Act) (Silence, error)
	// EndSilence ends a silence before its time. One that is unknown or over is an ErrNotFound.
	EndSilence(ctx context.Context, id sluice.ID, act sluice.Act) error
	// TakeNotices makes a receiver known, and gives what it is to be told now, the oldest first, at most limit: of each
	// alert one, so that nobody hears that it is over before hearing of it. Nobody else gets these until hold has passed.
	TakeNotices(ctx context.Context, receiver string, limit int, hold time.Duration) ([]Notice, error)
	// SettleNotices strikes what a receiver was told, and puts off the rest.
	SettleNotices(ctx context.Context, results []NoticeResult) error
}

// Given returns the port of a store, also where decorators stand before it. Where there is none, every method of the
// returned Store gives the reason: a [sluice.ErrInvalid] for nil, a [sluice.ErrNotFound] for a store without alerts.
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no alerts")
	if err != nil {
		return missing{err}
	}
	return port
}

// ReceiverKept is how long a receiver is kept that no process asks for any more, and NoticeKept how long one that
// cannot be reached is tried.
const (
	ReceiverKept = 7 * 24 * time.Hour
	NoticeKept   = 7 * 24 * time.Hour
)

// Book is all that is stored of alerts.
type Book struct {
	// Rules by name and queue. Those of Read have the presets among them, as they count.
	Rules []Rule
	// Alerts that are or were pending, by rule and queue. What was never pending is missing.
	Alerts []Alert
	// Silences that are not over, those that end first first.
	Silences []Silence
	// Receivers that are known, by name.
	Receivers []ReceiverStatus
	// Now is the store's clock.
	Now time.Time
}

// ReceiverStatus is a receiver as the store knows it.
type ReceiverStatus struct {
	Name string `json:"name"`
	// Seen is when a process last asked what it is to be told.
	Seen time.Time `json:"seen"`
	// Waiting counts what it was not told yet; Oldest is since when, Error why, as the last try found.
	Waiting int       `json:"waiting"`
	Oldest  time.Time `json:"oldest,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// Evaluation is the result of evaluating all rules once.
type Evaluation struct {
	// Alerts, each with the version that it was read with.
	Alerts []Alert
	// Messages for every receiver, and Entries for the audit.
	Messages []Message
	Entries  []sluice.AuditEntry
}

// Notice is a message that a receiver does not have yet.
type Notice struct {
	// Seq orders the notices.
	Seq      int64
	Receiver string
	Message  Message
	// CreatedAt is since when, Attempts how often it was tried, this time among them, and Error what came of it last.
	CreatedAt time.Time
	Attempts  int
	Error     string
}

// NoticeResult says what became of telling a notice.
type NoticeResult struct {
	Seq int64
	// Done: it was told, or is given up. Else it is tried again after a while, because of the error.
	Done  bool
	Again time.Duration
	Error string
}

// Target is a rule and the queue in which it is evaluated.
type Target struct {
	Rule Rule
	// Queue has no name for a rule about the store.
	Queue sluice.Queue
	// Threshold is the one that counts there.
	Threshold float64
}

// Targets lists what is evaluated: each rule in the queues that it covers. The rule of a queue counts there in place of
// that of all queues, whatever it covers. Rules that are disabled are missing.
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
			if r.Queue == q.Name || r.Queue == "" && !own[RuleName(r.Name, q.Name)] && r.Covers.Covers(q) {
				out = append(out, Target{Rule: r, Queue: q, Threshold: r.ThresholdIn(q)})
			}
		}
	}
	return out
}
