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

// The states. An alert is pending from when its condition holds until the condition has held for the rule's For. A
// silenced alert would fire, but a [Silence] hides it.
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

// Rule is the definition of an alert. There is one alert for each queue that the rule covers, or one for the store,
// as its metric says.
type Rule struct {
	// Name names the rule, such as dead-letters. A stored rule with the name of a preset replaces the preset.
	Name string
	// Queue is the only queue of the rule. Empty: all queues of Covers. In its queue, the rule replaces the rule of
	// the same name for all queues.
	Queue string
	// Metric names the evaluated figure; see [Metrics].
	Metric string
	// Op is ">" or "<": the side of the threshold on which the condition holds.
	Op string
	// Threshold is in the unit of the metric.
	Threshold float64
	// RateShare limits the threshold to this share of the queue's rate, in queues with a rate. 0: no limit. For
	// example, a queue with 2 jobs per second never has 5 failures per second.
	RateShare float64
	// For is how long the condition must hold before the alert fires. 0: the alert fires at once.
	For time.Duration
	// Window is how far back a windowed metric looks. Other metrics ignore it.
	Window time.Duration
	// Severity says how much the alert matters.
	Severity health.Severity
	// Covers says which queues the rule covers. Ignored if Queue is set.
	Covers Scope
	// Summary is one sentence about the fault. Runbook is the steps to take, one per line.
	Summary string
	Runbook string
	// Source lists the requirements that asked for the rule. Only presets have one.
	Source string
	// Disabled rules are not evaluated.
	Disabled bool

	// Version counts the changes. 0: the rule is not stored.
	Version int64
	// ChangedAt, ChangedBy and Reason describe the last change.
	ChangedAt time.Time
	ChangedBy string
	Reason    string
}

// ruleText is a rule in JSON, with durations as people write them.
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
	Summary   string          `json:"summary,omitempty"`
	Runbook   string          `json:"runbook,omitempty"`
	Source    string          `json:"source,omitempty"`
	Disabled  bool            `json:"disabled"`
	Version   int64           `json:"version,omitempty"`
}

// MarshalJSON writes the rule's fields by their names, with durations as settings write them.
func (r Rule) MarshalJSON() ([]byte, error) {
	text := ruleText{
		r.Name, r.Queue, r.Metric, r.Op, r.Threshold, r.RateShare, sluice.FormatDuration(r.For), "", r.Severity,
		r.Covers, r.Summary, r.Runbook, r.Source, r.Disabled, r.Version,
	}
	if r.Window > 0 {
		text.Window = sluice.FormatDuration(r.Window)
	}
	return json.Marshal(text)
}

// UnmarshalJSON reads the text of MarshalJSON, but for its source.
func (r *Rule) UnmarshalJSON(text []byte) error {
	var t ruleText
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	*r = Rule{
		Name: t.Name, Queue: t.Queue, Metric: t.Metric, Op: t.Op, Threshold: t.Threshold, RateShare: t.RateShare, Severity: t.Severity,
		Covers: t.Covers, Summary: t.Summary, Runbook: t.Runbook, Disabled: t.Disabled, Version: t.Version,
	}
	for _, d := range []struct {
		field string
		text  string
		into  *time.Duration
	}{{"for", t.For, &r.For}, {"window", t.Window, &r.Window}} {
		var err error
		if *d.into, err = feature.Duration(d.field, d.text); err != nil {
			return err
		}
	}
	return nil
}

// Object names the rule in the audit; see [RuleName].
func (r Rule) Object() string { return RuleName(r.Name, r.Queue) }

// RuleName names an alert or a rule by its name and its queue, if any: dead-letters, dead-letters/payments.
func RuleName(rule, queue string) string {
	if queue == "" {
		return rule
	}
	return rule + "/" + queue
}

// Preset reports whether a preset has the rule's name.
func (r Rule) Preset() bool {
	_, found := presetOf(r.Name)
	return found
}

// Breaks reports whether the condition holds for a value and a threshold.
func (r Rule) Breaks(value, threshold float64) bool {
	if r.Op == "<" {
		return value < threshold
	}
	return value > threshold
}

// ThresholdIn returns the threshold in a queue, by RateShare of the queue's rate.
func (r Rule) ThresholdIn(queue sluice.Queue) float64 {
	if r.RateShare > 0 && !queue.Settings.Rate.IsZero() {
		return math.Min(r.Threshold, r.RateShare*queue.Settings.Rate.PerSecond())
	}
	return r.Threshold
}

// The bounds of a rule.
const (
	maxFor     = 30 * 24 * time.Hour
	minWindow  = time.Minute
	maxWindow  = 90 * 24 * time.Hour
	maxRunbook = 10_000
)

// Check returns what is wrong with the rule, as an ErrInvalid.
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
		if sluice.IsInternalQueue(r.Queue) {
			return feature.Invalid("queue", fmt.Sprintf("%.80q is Sluice's own; an alert on it could only cause more notifications", r.Queue))
		}
		if !metric.OfQueue {
			return feature.Invalid("queue", metric.Name+" is about the whole store, not about a queue")
		}
	}
	switch {
	case r.Op != ">" && r.Op != "<":
		return feature.Invalid("op", fmt.Sprintf("%.20q must be > or <", r.Op))
	case math.IsNaN(r.Threshold) || math.IsInf(r.Threshold, 0) || math.Abs(r.Threshold) > 1e15:
		return feature.Invalid("threshold", "it must be a value that the metric can reach")
	case r.For < 0 || r.For > maxFor:
		return feature.Invalid("for", fmt.Sprintf("%s must be from 0s to %s", r.For, sluice.FormatDuration(maxFor)))
	case metric.Windowed && (r.Window < minWindow || r.Window > maxWindow):
		return feature.Invalid("window", fmt.Sprintf("%s must be from %s to %s, because %s needs a window", r.Window, sluice.FormatDuration(minWindow), sluice.FormatDuration(maxWindow), metric.Name))
	case !slices.Contains(Severities(), r.Severity):
		return feature.Invalid("severity", fmt.Sprintf("%.20q must be one of note, warning, error, critical", r.Severity))
	case r.RateShare < 0 || r.RateShare > 1:
		return feature.Invalid("rate_share", "it must be from 0 to 1")
	case len(r.Runbook) > maxRunbook || len(r.Summary) > maxRunbook:
		return feature.Invalid("runbook", fmt.Sprintf("it has more than %d bytes", maxRunbook))
	}
	return r.Covers.check(metric)
}

// Scope says which queues a rule covers.
type Scope string

// The scopes. Limits are a rate, a concurrency, and limits of tenants. In a queue with limits jobs wait on
// purpose, so the number of waiting jobs and their waits show no fault.
const (
	// CoversAll is every queue.
	CoversAll Scope = ""
	// CoversWorkers is the queues whose jobs workers run. CoversEngines is the queues with an engine.
	CoversWorkers Scope = "workers"
	CoversEngines Scope = "engines"
	// CoversUnlimited is the queues without limits. CoversUnlimitedWorkers and CoversUnlimitedEngines are the
	// queues without limits of each kind.
	CoversUnlimited        Scope = "unlimited"
	CoversUnlimitedWorkers Scope = "unlimited workers"
	CoversUnlimitedEngines Scope = "unlimited engines"
	// CoversRated is the queues with a rate.
	CoversRated Scope = "rated"
	// CoversStore is the store as a whole, and no queue.
	CoversStore Scope = "store"
)

// check returns why a scope does not fit a metric.
func (s Scope) check(metric Metric) error {
	known := []Scope{CoversAll, CoversWorkers, CoversEngines, CoversUnlimited, CoversUnlimitedWorkers, CoversUnlimitedEngines, CoversRated, CoversStore}
	if !slices.Contains(known, s) {
		return feature.Invalid("covers", fmt.Sprintf("%.40q must be one of %q", s, known[1:]))
	}
	if metric.OfQueue && s == CoversStore || !metric.OfQueue && s != CoversStore && s != CoversAll {
		return feature.Invalid("covers", fmt.Sprintf("%s does not tell of %q", metric.Name, s))
	}
	return nil
}

// Describe describes the queues for people.
func (s Scope) Describe() string {
	return map[Scope]string{
		CoversAll: "every queue", CoversWorkers: "queues whose jobs workers run", CoversEngines: "queues with an engine",
		CoversUnlimited:        "queues without limits",
		CoversUnlimitedWorkers: "queues without limits whose jobs workers run", CoversUnlimitedEngines: "queues without limits with an engine",
		CoversRated: "queues with a rate", CoversStore: "the store",
	}[s]
}

// Covers reports whether the scope has a queue.
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

// limited reports whether jobs of a queue wait on purpose.
func limited(queue sluice.Queue) bool {
	s := queue.Settings
	return !s.Rate.IsZero() || s.Concurrency > 0 || s.Limits != "" || s.TenantConcurrency > 0 || !s.TenantRate.IsZero() || queue.ByTenant
}

// Silence hides alerts from receivers for a while.
type Silence struct {
	// ID names the silence.
	ID sluice.ID `json:"id"`
	// Rule and Queue choose the alerts. Empty: any.
	Rule  string `json:"rule,omitempty"`
	Queue string `json:"queue,omitempty"`
	// During is the length of the silence from when it is stored. Until is its end, by the store's clock.
	During time.Duration `json:"-"`
	Until  time.Time     `json:"until"`
	// CreatedAt, By and Reason say when it was stored, by whom and why.
	CreatedAt time.Time `json:"created_at"`
	By        string    `json:"by"`
	Reason    string    `json:"reason"`
}

// Hides reports whether an alert is silenced at an instant.
func (s Silence) Hides(rule, queue string, now time.Time) bool {
	return (s.Rule == "" || s.Rule == rule) && (s.Queue == "" || s.Queue == queue) && now.Before(s.Until)
}

// figure writes a number in few digits.
func figure(value float64) string { return strconv.FormatFloat(value, 'g', 6, 64) }

// Name returns the name of the silence in the audit: its rule and queue, with * for any rule.
func (s Silence) Name() string { return RuleName(cmp.Or(s.Rule, "*"), s.Queue) }
