package alert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/feature"
)

// State is the state of an alert.
type State string

// The states. An alert is pending from when its condition holds until it has held for the rule's For. A silenced one
// would fire, but somebody said that nobody is to be told.
const (
	Inactive State = "inactive"
	Pending  State = "pending"
	Firing   State = "firing"
	Silenced State = "silenced"
)

// Severities lists the severities of rules, the mildest first.
func Severities() []health.Severity {
	return []health.Severity{health.SeverityNote, health.SeverityWarning, health.SeverityError, health.SeverityCritical}
}

// Rule says when people are to be told of something. There is one alert for each queue that the rule covers, or one
// for the store, as its metric tells of queues or of the store.
type Rule struct {
	// Name is the rule's, such as dead-letters. A stored rule of a preset's name counts in its place.
	Name string
	// Queue is the only one that the rule covers; empty: all that Covers names. The rule of a queue counts there in
	// place of the one of its name for all.
	Queue string
	// Metric names the figure that is looked at, one of Metrics.
	Metric string
	// Op is ">" or "<": on which side of the threshold the figure is to be told of.
	Op string
	// Threshold is in the unit of the metric.
	Threshold float64
	// RateShare bounds the threshold to so much of the queue's rate, in queues that have one; 0: it does not. A queue
	// that lets two jobs a second through never has five failures a second.
	RateShare float64
	// For is how long the condition must hold before the alert fires; 0: it fires at once.
	For time.Duration
	// Window is how far back a metric looks that tells of a while; for others it has no meaning.
	Window time.Duration
	// Severity says how much it matters.
	Severity health.Severity
	// Covers says of which queues the rule tells, unless Queue names one.
	Covers Scope
	// Says is one sentence: what is wrong when it fires. Runbook is what to do then, one step a line.
	Says    string
	Runbook string
	// Source names the requirements of the source designs that ask for it; only presets have one.
	Source string
	// Disabled rules are not looked at.
	Disabled bool

	// Version counts the changes; 0: the rule is not stored.
	Version int64
	// ChangedAt, ChangedBy and Reason tell of the last change.
	ChangedAt time.Time
	ChangedBy string
	Reason    string
}

// alertRuleText is how a rule is written as JSON, with durations as people write them.
type ruleText struct {
	Name      string          `json:"name"`
	Queue     string          `json:"queue,omitempty"`
	Metric    string          `json:"metric"`
	Op        string          `json:"op"`
	Threshold float64         `json:"threshold"`
	RateShare float64         `json:"rate_share,omitempty"`
	For       string          `json:"for"`
	Window    string          `json:"window,omitempty"`
	Severity  health.Severity `json:"severity"`
	Covers    Scope           `json:"covers,omitempty"`
	Says      string          `json:"says,omitempty"`
	Runbook   string          `json:"runbook,omitempty"`
	Source    string          `json:"source,omitempty"`
	Disabled  bool            `json:"disabled"`
	Version   int64           `json:"version,omitempty"`
}

// MarshalJSON writes the rule's fields by their names, durations as settings write them.
func (r Rule) MarshalJSON() ([]byte, error) {
	text := ruleText{
		r.Name, r.Queue, r.Metric, r.Op, r.Threshold, r.RateShare, sluice.FormatDuration(r.For), "", r.Severity,
		r.Covers, r.Says, r.Runbook, r.Source, r.Disabled, r.Version,
	}
	if r.Window > 0 {
		text.Window = sluice.FormatDuration(r.Window)
	}
	return json.Marshal(text)
}

// Object names the rule in the audit: its name, and the queue where it is one queue's.
func (r Rule) Object() string { return RuleName(r.Name, r.Queue) }

// RuleName names an alert, or the rule of a queue: dead-letters, dead-letters/payments.
func RuleName(rule, queue string) string {
	if queue == "" {
		return rule
	}
	return rule + "/" + queue
}

// Preset reports whether there is a preset of the rule's name.
func (r Rule) Preset() bool {
	_, found := presetOf(r.Name)
	return found
}

// Breaks reports whether a figure is on the wrong side of a threshold.
func (r Rule) Breaks(value, threshold float64) bool {
	if r.Op == "<" {
		return value < threshold
	}
	return value > threshold
}

// ThresholdIn is the threshold that counts in a queue, by the queue's own rate.
func (r Rule) ThresholdIn(queue sluice.Queue) float64 {
	if r.RateShare > 0 && !queue.Settings.Rate.IsZero() {
		return math.Min(r.Threshold, r.RateShare*queue.Settings.Rate.PerSecond())
	}
	return r.Threshold
}

// bounds of what a rule may say.
const (
	maxFor     = 30 * 24 * time.Hour
	minWindow  = time.Minute
	maxWindow  = 90 * 24 * time.Hour
	maxRunbook = 10_000
)

// Check says which rule of rules it breaks, as an ErrInvalid.
func (r Rule) Check() error {
	if err := sluice.CheckQueueName(r.Name); err != nil {
		return feature.Invalid("rule", fmt.Sprintf("%.80q is no name: up to 64 letters, figures, and . _ : - behind the first", r.Name))
	}
	metric, err := MetricNamed(r.Metric)
	if err != nil {
		return feature.Invalid("metric", err.Error())
	}
	if r.Queue != "" {
		if err := sluice.CheckQueueName(r.Queue); err != nil {
			return err
		}
		if !metric.OfQueue {
			return feature.Invalid("queue", metric.Name+" tells of the whole store, and of no queue")
		}
	}
	switch {
	case r.Op != ">" && r.Op != "<":
		return feature.Invalid("op", fmt.Sprintf("%.20q is neither > nor <", r.Op))
	case math.IsNaN(r.Threshold) || math.IsInf(r.Threshold, 0) || math.Abs(r.Threshold) > 1e15:
		return feature.Invalid("threshold", "it is no figure that can be reached")
	case r.For < 0 || r.For > maxFor:
		return feature.Invalid("for", fmt.Sprintf("%s is not from 0s to %s", r.For, sluice.FormatDuration(maxFor)))
	case metric.Windowed && (r.Window < minWindow || r.Window > maxWindow):
		return feature.Invalid("window", fmt.Sprintf("%s is not from %s to %s; %s tells of a while", r.Window, sluice.FormatDuration(minWindow), sluice.FormatDuration(maxWindow), metric.Name))
	case !slices.Contains(Severities(), r.Severity):
		return feature.Invalid("severity", fmt.Sprintf("%.20q is none of note, warning, error, critical", r.Severity))
	case r.RateShare < 0 || r.RateShare > 1:
		return feature.Invalid("rate_share", "it is not from 0 to 1")
	case len(r.Runbook) > maxRunbook || len(r.Says) > maxRunbook:
		return feature.Invalid("runbook", fmt.Sprintf("it has more than %d bytes", maxRunbook))
	}
	return r.Covers.check(metric)
}

// Scope says which queues a rule covers.
type Scope string

// The scopes. Limits are a rate, a concurrency, and whatever tenants are granted: in a queue that has them jobs
// wait because they are meant to, so how many wait and how long says nothing of trouble.
const (
	// CoversAll is every queue.
	CoversAll Scope = ""
	// CoversWorkers are queues whose jobs workers run, CoversEngines those that have an engine.
	CoversWorkers Scope = "workers"
	CoversEngines Scope = "engines"
	// CoversUnlimited are queues without limits, CoversUnlimitedWorkers and CoversUnlimitedEngines those of a kind.
	CoversUnlimited        Scope = "unlimited"
	CoversUnlimitedWorkers Scope = "unlimited workers"
	CoversUnlimitedEngines Scope = "unlimited engines"
	// CoversRated are queues that have a rate.
	CoversRated Scope = "rated"
	// CoversStore is the store as a whole, and no queue.
	CoversStore Scope = "store"
)

// check says whether a scope fits a metric.
func (s Scope) check(metric Metric) error {
	known := []Scope{CoversAll, CoversWorkers, CoversEngines, CoversUnlimited, CoversUnlimitedWorkers, CoversUnlimitedEngines, CoversRated, CoversStore}
	if !slices.Contains(known, s) {
		return feature.Invalid("covers", fmt.Sprintf("%.40q is none of %q", s, known[1:]))
	}
	if metric.OfQueue && s == CoversStore || !metric.OfQueue && s != CoversStore && s != CoversAll {
		return feature.Invalid("covers", fmt.Sprintf("%s does not tell of %q", metric.Name, s))
	}
	return nil
}

// Says names the queues for people.
func (s Scope) Says() string {
	return map[Scope]string{
		CoversAll: "every queue", CoversWorkers: "queues whose jobs workers run", CoversEngines: "queues with an engine",
		CoversUnlimited:        "queues without limits",
		CoversUnlimitedWorkers: "queues without limits whose jobs workers run", CoversUnlimitedEngines: "queues without limits with an engine",
		CoversRated: "queues with a rate", CoversStore: "the store",
	}[s]
}

// Covers reports whether a rule tells of a queue.
func (s Scope) Covers(queue sluice.Queue) bool {
	engine := queue.Settings.Engine != ""
	switch s {
	case CoversAll:
		return true
	case CoversWorkers:
		return !engine
	case CoversEngines:
		return engine
	case CoversUnlimited:
		return !limited(queue)
	case CoversUnlimitedWorkers:
		return !limited(queue) && !engine
	case CoversUnlimitedEngines:
		return !limited(queue) && engine
	case CoversRated:
		return !queue.Settings.Rate.IsZero()
	}
	return false
}

// limited reports whether jobs of a queue wait because they are meant to.
func limited(queue sluice.Queue) bool {
	s := queue.Settings
	return !s.Rate.IsZero() || s.Concurrency > 0 || s.TenantConcurrency > 0 || !s.TenantRate.IsZero() || queue.ByTenant
}

// Silence keeps receivers from being told of alerts for a while.
type Silence struct {
	ID sluice.ID `json:"id"`
	// Rule and Queue say of which; empty: of every one.
	Rule  string `json:"rule,omitempty"`
	Queue string `json:"queue,omitempty"`
	// During is how long it lasts from when it is stored; Until is when it ends, by the store's clock.
	During time.Duration `json:"-"`
	Until  time.Time     `json:"until"`
	// CreatedAt, By and Reason tell of who wanted it, when and why.
	CreatedAt time.Time `json:"created_at"`
	By        string    `json:"by"`
	Reason    string    `json:"reason"`
}

// Hides reports whether an alert is silenced at an instant.
func (s Silence) Hides(rule, queue string, now time.Time) bool {
	return (s.Rule == "" || s.Rule == rule) && (s.Queue == "" || s.Queue == queue) && now.Before(s.Until)
}

// figure writes a number shortly.
func figure(value float64) string { return strconv.FormatFloat(value, 'g', 6, 64) }

// Name is what the audit calls the silence: its rule and queue, with * for every one.
func (s Silence) Name() string { return RuleName(cmp.Or(s.Rule, "*"), s.Queue) }
