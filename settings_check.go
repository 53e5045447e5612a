package sluice

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// checkTogether checks the rules beyond the range of one setting.
func (s Settings) checkTogether() error {
	if s.Backoff.Max < s.Backoff.Base {
		return invalid("backoff_max", fmt.Sprintf("%s is shorter than backoff_base, %s", FormatDuration(s.Backoff.Max), FormatDuration(s.Backoff.Base)))
	}
	if strings.Contains(s.Engine, "/") {
		return invalid("engine", "its name must not have a slash, which parts it from the namespace")
	}
	for i, names := 0, strings.Split(s.Limits, ","); s.Limits != "" && i < len(names); i++ {
		if !isQueueName(names[i]) || slices.Contains(names[:i], names[i]) {
			return invalid("limits", fmt.Sprintf("%.80q must be names of limits, each once, with commas between, such as bank,ledger", s.Limits))
		}
	}
	return checkRef(s.RunRef)
}

// checkRange checks one setting by itself. It builds no text for a valid value, because it runs for every setting
// of every queue that is read.
func (d Setting) checkRange(s *Settings) error {
	inside := true
	switch v := d.field(s).(type) {
	case *int:
		inside = int64(*v) >= d.low && int64(*v) <= d.high
	case *float64:
		inside = *v >= float64(d.low) && *v <= float64(d.high)
	case *Rate:
		inside = v.Fits()
	case *time.Duration:
		inside = v.Milliseconds() >= d.low && v.Milliseconds() <= d.high && *v%time.Millisecond == 0
	case *AuditLevel:
		if *v != AuditNotable && *v != AuditFull {
			return invalid(d.Name, fmt.Sprintf("%.40q must be %s or %s", *v, AuditNotable, AuditFull))
		}
	case *string:
		return d.checkText(*v)
	}
	if !inside {
		low, high := d.Range()
		return invalid(d.Name, fmt.Sprintf("%s must be from %s to %s", d.Format(*s), low, high))
	}
	return nil
}

// checkText checks the length and the form of a text.
func (d Setting) checkText(text string) error {
	if int64(len(text)) > d.high {
		return invalid(d.Name, fmt.Sprintf("%d bytes are more than %d", len(text), d.high))
	}
	if d.kind == kindName {
		return checkName(d.Name, text, maxName)
	}
	if text != "" && !json.Valid([]byte(text)) { // payload_schema is the only text that is no name
		return invalid(d.Name, "it is not a JSON Schema: it is not JSON")
	}
	return nil
}

// Range returns the lowest and the highest value, as people write them. Empty: only numbers, durations and rates have them.
func (d Setting) Range() (low, high string) {
	low, high = fmt.Sprint(d.low), fmt.Sprint(d.high)
	switch d.field(new(Settings)).(type) {
	case *bool, *string, *time.Time, *AuditLevel:
		return "", ""
	case *Rate:
		high = fmt.Sprintf("%d/s, of at least one job in whole milliseconds", maxRate)
	case *time.Duration:
		low, high = FormatDuration(time.Duration(d.low)*time.Millisecond), FormatDuration(time.Duration(d.high)*time.Millisecond)+", in whole milliseconds"
	}
	return low, high
}

// DefaultRunRef is the template of refs if the setting run_ref is empty.
const DefaultRunRef = "{queue}-{id}"

// refFields are the fields that a template of refs may name.
var refFields = []string{"{queue}", "{type}", "{id}", "{key}", "{tenant}"}

// checkRef returns the rule that a template of refs breaks. Each job of a queue must have its own ref.
func checkRef(template string) error {
	rest := template
	for _, field := range refFields {
		rest = strings.ReplaceAll(rest, field, "")
	}
	switch {
	case template == "":
		return nil
	case strings.ContainsAny(rest, "{}"):
		return invalid("run_ref", "it may name "+strings.Join(refFields, ", "))
	case !strings.Contains(template, "{id}") && !strings.Contains(template, "{key}"):
		return invalid("run_ref", "it must name {id} or {key}, or jobs would have the same ref")
	}
	return nil
}
