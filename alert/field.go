package alert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Field is a field of a rule that people can set. The store, JSON and the command line use the same name for it.
type Field struct {
	Name    string
	Meaning string
	field   func(*Rule) any
}

var fields = [...]Field{
	{"metric", "the figure that is looked at", func(r *Rule) any { return &r.Metric }},
	{"op", "> or <: on which side of the threshold it is to be told of", func(r *Rule) any { return &r.Op }},
	{"threshold", "in the unit of the metric", func(r *Rule) any { return &r.Threshold }},
	{"rate_share", "at most so much of the queue's rate, 0 to 1, is the threshold of a queue that has one; 0: the threshold is as it stands", func(r *Rule) any { return &r.RateShare }},
	{"for", "how long the condition must hold before the alert fires, such as 5m; 0s: not at all", func(r *Rule) any { return &r.For }},
	{"window", "how far back a metric looks that tells of a while, such as 1h", func(r *Rule) any { return &r.Window }},
	{"severity", "note, warning, error or critical", func(r *Rule) any { return &r.Severity }},
	{"covers", "of which queues it tells: workers, engines, unlimited, unlimited workers, unlimited engines, rated; empty: all", func(r *Rule) any { return &r.Covers }},
	{"summary", "what is wrong when it fires, in a sentence", func(r *Rule) any { return &r.Summary }},
	{"runbook", "what to do then, one step a line", func(r *Rule) any { return &r.Runbook }},
	{"disabled", "true: it is not looked at", func(r *Rule) any { return &r.Disabled }},
}

// Fields lists the fields of a rule.
func Fields() []Field { return slices.Clone(fields[:]) }

// FieldNamed finds a field by its name. An unknown name is an ErrInvalid that lists the names.
func FieldNamed(name string) (Field, error) {
	var names []string
	for _, f := range fields {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Field{}, feature.Invalid("field", fmt.Sprintf("a rule has no %.40q; it has: %s", name, strings.Join(names, ", ")))
}

// Format writes the field's value as people write it.
func (f Field) Format(r Rule) string {
	switch v := f.field(&r).(type) {
	case *string:
		return *v
	case *float64:
		return strconv.FormatFloat(*v, 'f', -1, 64)
	case *time.Duration:
		return sluice.FormatDuration(*v)
	case *health.Severity:
		return string(*v)
	case *Scope:
		return string(*v)
	case *bool:
		return strconv.FormatBool(*v)
	}
	return ""
}

// Parse reads a value into the field. A text that is no such value is an ErrInvalid.
func (f Field) Parse(r *Rule, value string) error {
	var err error
	switch v := f.field(r).(type) {
	case *string:
		*v = value
	case *float64:
		*v, err = strconv.ParseFloat(value, 64)
	case *time.Duration:
		*v, err = sluice.ParseDuration(value)
	case *health.Severity:
		*v = health.Severity(value)
	case *Scope:
		*v = Scope(value)
	case *bool:
		*v, err = strconv.ParseBool(value)
	}
	if err != nil {
		kind := "a number"
		switch f.field(r).(type) {
		case *time.Duration:
			kind = "a duration such as 500ms, 30s, 5m, 2h or 7d"
		case *bool:
			kind = "true or false"
		}
		return feature.Invalid(f.Name, fmt.Sprintf("%.40q is not %s", value, kind))
	}
	return nil
}
