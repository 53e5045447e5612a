package sluice

import (
	"context"
	"time"
)

// Alerting keeps rules, alerts, silences, and what receivers are still to be told. It is a part of Store.
type Alerting interface {
	// AlertBook reads all that is stored of alerts: Rules are those that somebody stored, without the presets.
	AlertBook(ctx context.Context) (AlertBook, error)
	// SaveAlertRule stores a rule, by its name and queue, by the rule of SaveQueue.
	SaveAlertRule(ctx context.Context, rule AlertRule, act Act) (AlertRule, error)
	// DeleteAlertRule forgets what somebody stored of a rule. An unknown one is an ErrNotFound.
	DeleteAlertRule(ctx context.Context, name, queue string, act Act) error
	// SaveAlerts stores what a look has found, all of it or nothing: alerts, what the audit is told, and for every receiver
	// that is known what it is to be told. It is an ErrConflict where an alert has another version than the stored one:
	// somebody else has looked in between. It also forgets silences that are over and receivers that were not seen for
	// AlertReceiverKept, with what they were to be told.
	SaveAlerts(ctx context.Context, round AlertRound) error
	// SaveSilence stores a silence that begins now; the same id again changes nothing. Until is filled in.
	SaveSilence(ctx context.Context, silence Silence, act Act) (Silence, error)
	// EndSilence ends a silence before its time. One that is unknown or over is an ErrNotFound.
	EndSilence(ctx context.Context, id ID, act Act) error
	// TakeNotices makes a receiver known, and gives what it is to be told now, the oldest first, at most limit: of each
	// alert one, so that nobody hears that it is over before hearing of it. Nobody else gets these until hold has passed.
	TakeNotices(ctx context.Context, receiver string, limit int, hold time.Duration) ([]AlertNotice, error)
	// SettleNotices strikes what a receiver was told, and puts off the rest.
	SettleNotices(ctx context.Context, results []NoticeResult) error
}

// AlertReceiverKept is how long a receiver is kept that no process asks for any more, and AlertNoticeKept how long one that
// cannot be reached is tried.
const (
	AlertReceiverKept = 7 * day
	AlertNoticeKept   = 7 * day
)

// AlertBook is all that is stored of alerts.
type AlertBook struct {
	// Rules by name and queue. Those of a Client have the presets among them, as they count.
	Rules []AlertRule
	// Alerts that are or were pending, by rule and queue. What was never pending is missing.
	Alerts []Alert
	// Silences that are not over, those that end first first.
	Silences []Silence
	// Receivers that are known, by name.
	Receivers []AlertReceiver
	// Now is the store's clock.
	Now time.Time
}

// AlertReceiver is whom processes with upkeep tell of alerts.
type AlertReceiver struct {
	Name string `json:"name"`
	// Seen is when a process last asked what it is to be told.
	Seen time.Time `json:"seen"`
	// Waiting counts what it was not told yet; Oldest is since when, Error why, as the last try found.
	Waiting int       `json:"waiting"`
	Oldest  time.Time `json:"oldest,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// AlertRound is what a look at alerts has found.
type AlertRound struct {
	// Alerts, each with the version that it was read with.
	Alerts []Alert
	// Messages for every receiver, and Entries for the audit.
	Messages []AlertMessage
	Entries  []AuditEntry
}

// AlertNotice is something that a receiver is still to be told.
type AlertNotice struct {
	// Seq orders the notices.
	Seq      int64
	Receiver string
	Message  AlertMessage
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

// AlertTarget is a rule and the queue in which it is looked at.
type AlertTarget struct {
	Rule AlertRule
	// Queue has no name for a rule about the store.
	Queue Queue
	// Threshold is the one that counts there.
	Threshold float64
}

// AlertTargets says what is looked at: each rule in the queues that it covers. The rule of a queue counts there in place of
// that of all queues, whatever it covers. Rules that are disabled are missing.
func AlertTargets(rules []AlertRule, queues []Queue) []AlertTarget {
	own := make(map[string]bool)
	for _, r := range rules {
		if r.Queue != "" {
			own[r.Object()] = true
		}
	}
	var out []AlertTarget
	for _, r := range rules {
		metric, err := AlertMetricNamed(r.Metric)
		if err != nil || r.Disabled {
			continue // a newer program may know the metric
		}
		if !metric.OfQueue {
			out = append(out, AlertTarget{Rule: r, Threshold: r.Threshold})
			continue
		}
		for _, q := range queues {
			if r.Queue == q.Name || r.Queue == "" && !own[AlertName(r.Name, q.Name)] && r.Covers.Covers(q) {
				out = append(out, AlertTarget{Rule: r, Queue: q, Threshold: r.ThresholdIn(q)})
			}
		}
	}
	return out
}
