package sluice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AlertField is something that can be set of a rule: its name, which is the same in the store, in JSON and on the command
// line, and what it means.
type AlertField struct {
	Name    string
	Meaning string
	field   func(*AlertRule) any
}

var alertFields = [...]AlertField{
	{"metric", "the figure that is looked at", func(r *AlertRule) any { return &r.Metric }},
	{"op", "> or <: on which side of the threshold it is to be told of", func(r *AlertRule) any { return &r.Op }},
	{"threshold", "in the unit of the metric", func(r *AlertRule) any { return &r.Threshold }},
	{"rate_share", "at most so much of the queue's rate, 0 to 1, is the threshold of a queue that has one; 0: the threshold is as it stands", func(r *AlertRule) any { return &r.RateShare }},
	{"for", "how long the condition must hold before the alert fires, such as 5m; 0s: not at all", func(r *AlertRule) any { return &r.For }},
	{"window", "how far back a metric looks that tells of a while, such as 1h", func(r *AlertRule) any { return &r.Window }},
	{"severity", "note, warning, error or critical", func(r *AlertRule) any { return &r.Severity }},
	{"covers", "of which queues it tells: workers, engines, unlimited, unlimited workers, unlimited engines, rated; empty: all", func(r *AlertRule) any { return &r.Covers }},
	{"says", "what is wrong when it fires, in a sentence", func(r *AlertRule) any { return &r.Says }},
	{"runbook", "what to do then, one step a line", func(r *AlertRule) any { return &r.Runbook }},
	{"disabled", "true: it is not looked at", func(r *AlertRule) any { return &r.Disabled }},
}

// AlertFields lists what can be set of a rule.
func AlertFields() []AlertField { return slices.Clone(alertFields[:]) }

// AlertFieldNamed finds a field by its name. An unknown name is an ErrInvalid that lists them.
func AlertFieldNamed(name string) (AlertField, error) {
	var names []string
	for _, f := range alertFields {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return AlertField{}, invalid("field", fmt.Sprintf("a rule has no %.40q; it has: %s", name, strings.Join(names, ", ")))
}

// Format writes what a rule says, as people write it.
func (f AlertField) Format(r AlertRule) string {
	switch v := f.field(&r).(type) {
	case *string:
		return *v
	case *float64:
		return strconv.FormatFloat(*v, 'f', -1, 64)
	case *time.Duration:
		return FormatDuration(*v)
	case *Severity:
		return string(*v)
	case *AlertScope:
		return string(*v)
	case *bool:
		return strconv.FormatBool(*v)
	}
	return ""
}

// Parse sets what a rule says. What cannot be read is an ErrInvalid.
func (f AlertField) Parse(r *AlertRule, value string) error {
	var err error
	switch v := f.field(r).(type) {
	case *string:
		*v = value
	case *float64:
		*v, err = strconv.ParseFloat(value, 64)
	case *time.Duration:
		*v, err = ParseDuration(value)
	case *Severity:
		*v = Severity(value)
	case *AlertScope:
		*v = AlertScope(value)
	case *bool:
		*v, err = strconv.ParseBool(value)
	}
	if err != nil {
		return invalid(f.Name, fmt.Sprintf("%.40q cannot be read: %s", value, f.Meaning))
	}
	return nil
}
