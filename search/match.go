package search

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
)

// The first byte of a stored value of a text says how it compares.
const (
	equalTo    = "="
	beginsWith = "^"
	partOf     = "~"
)

// shownStates are the words that people see for queued jobs.
var shownStates = []string{"ready", "scheduled", "retrying", "blocked"}

// openRun is the value of a run that is under way.
const openRun = "open"

// fingerprint returns the fingerprint of a job's error. Empty: the job has no error.
func fingerprint(j sluice.Job) string {
	if j.Error == "" {
		return ""
	}
	return deadletter.Fingerprint(j.Queue, j.Error)
}

// stored returns a value as a term keeps it.
func (f Field) stored(v value, now time.Time) (string, error) {
	if v.part && f.kind != ofText && f.kind != ofID {
		return "", fmt.Errorf("~%.40s: only texts have parts", v.text)
	}
	switch f.kind {
	case ofState:
		if !slices.Contains(sluice.States(), sluice.State(v.text)) && !slices.Contains(shownStates, v.text) {
			return "", fmt.Errorf("%.40q must be one of %s, %s", v.text, strings.Trim(fmt.Sprint(sluice.States()), "[]"), strings.Join(shownStates, ", "))
		}
		return v.text, nil
	case ofRun:
		if v.text != openRun {
			return "", fmt.Errorf("%.40q must be %s; jobs that have or had a run match ref:*", v.text, openRun)
		}
		return v.text, nil
	case ofCount:
		return spanOf(v.text, func(text string) (string, error) {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return "", fmt.Errorf("%.40q must be a whole number", text)
			}
			return strconv.Itoa(n), nil
		})
	case ofInstant:
		return spanOf(v.text, func(text string) (string, error) { return instant(text, now) })
	case ofAge:
		return ageSpan(v.text, now)
	}
	beginning, begins := strings.CutSuffix(v.text, "*")
	switch {
	case v.part && v.text == "":
		return "", errors.New("a part must not be empty")
	case v.part:
		return partOf + v.text, nil
	case begins && !v.quoted && strings.Contains(beginning, "*"):
		return "", fmt.Errorf("%.40q may have one *, at its end", v.text)
	case begins && !v.quoted:
		return beginsWith + v.text, nil
	case f.kind == ofID && v.text != "":
		id, err := sluice.ParseID(v.text)
		if err != nil {
			return "", fmt.Errorf("%.40q must be an ID such as 01a1fb72-1dea-7abc-8fc6-99e4817522bb, or the beginning of one with a * at its end", v.text)
		}
		return equalTo + id.String(), nil
	}
	return equalTo + v.text, nil
}

// spanOf reads a comparison such as >=3 or a span such as 1..3, and stores it as low..high. Both ends are in the span;
// an open one is empty. A ! before an end excludes it.
func spanOf(text string, read func(string) (string, error)) (string, error) {
	for _, op := range []string{">=", "<=", ">", "<"} {
		bare, found := strings.CutPrefix(text, op)
		if !found {
			continue
		}
		bound, err := read(bare)
		switch {
		case err != nil:
			return "", err
		case op == ">=":
			return bound + "..", nil
		case op == "<=":
			return ".." + bound, nil
		case op == ">":
			return "!" + bound + "..", nil
		}
		return "..!" + bound, nil
	}
	low, high, span := strings.Cut(text, "..")
	if !span {
		bound, err := read(text)
		return bound + ".." + bound, err
	}
	var err error
	for _, end := range []*string{&low, &high} {
		if *end == "" {
			continue
		}
		if *end, err = read(*end); err != nil {
			return "", err
		}
	}
	if low == "" && high == "" {
		return "", errors.New("a span must have an end")
	}
	return low + ".." + high, nil
}

// instant reads an instant, a time of day in UTC, or a duration from now, and returns it in RFC 3339.
func instant(text string, now time.Time) (string, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return stamp(at), nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			midnight := now.Truncate(24 * time.Hour)
			return stamp(midnight.Add(at.Sub(at.Truncate(24 * time.Hour)))), nil
		}
	}
	bare, past := strings.CutPrefix(text, "-")
	d, err := sluice.ParseDuration(bare)
	if err != nil {
		return "", fmt.Errorf("%.40q must be an instant such as 2026-11-25T16:00:00Z, a time such as 16:00, or a time from now such as 10m or -1h", text)
	}
	if past {
		d = -d
	}
	return stamp(now.Add(d)), nil
}

// stamp formats an instant as terms keep it.
func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// ageSpan reads a span of ages, and stores the span of instants. An older job was created earlier.
func ageSpan(text string, now time.Time) (string, error) {
	span, err := spanOf(text, func(text string) (string, error) {
		d, err := sluice.ParseDuration(text)
		if err != nil || d < 0 {
			return "", fmt.Errorf("%.40q must be a duration such as 5m", text)
		}
		return stamp(now.Add(-d)), nil
	})
	if err != nil {
		return "", err
	}
	low, high, _ := strings.Cut(span, "..")
	return high + ".." + low, nil
}

// matches reports whether a job matches the term.
func (t Term) matches(j sluice.Job) bool {
	field, err := fieldNamed(t.Field)
	if err != nil {
		return false
	}
	return t.Not != slices.ContainsFunc(t.Values, func(value string) bool { return field.match(j, t.Field, value, t.At) })
}

// match compares a job with one stored value.
func (f Field) match(j sluice.Job, name, value string, at time.Time) bool {
	switch f.kind {
	case ofState:
		return string(j.State) == value || slices.Contains(shownStates, value) && j.Label(at) == value
	case ofRun:
		return j.State == sluice.StateDispatched
	case ofCount:
		n := f.count(j)
		return inSpan(value, func(end string) int {
			bound, err := strconv.Atoi(end)
			if err != nil {
				return 0
			}
			return n - bound
		})
	case ofInstant, ofAge:
		when := f.at(j)
		return !when.IsZero() && inSpan(value, func(end string) int {
			bound, err := time.Parse(time.RFC3339Nano, end)
			if err != nil {
				return 0
			}
			return when.Compare(bound)
		})
	}
	text, has := f.text(j, name)
	return has && matchText(value, text)
}

// inSpan reports whether something is in a stored span. Compare says on which side of an end it is.
func inSpan(span string, compare func(end string) int) bool {
	low, high, _ := strings.Cut(span, "..")
	low, above := strings.CutPrefix(low, "!")
	high, below := strings.CutPrefix(high, "!")
	if low != "" {
		if side := compare(low); side < 0 || above && side == 0 {
			return false
		}
	}
	if high != "" {
		if side := compare(high); side > 0 || below && side == 0 {
			return false
		}
	}
	return true
}

// matchText compares a text with a stored value.
func matchText(value, text string) bool {
	if len(value) == 0 {
		return false
	}
	wanted := value[1:]
	switch value[:1] {
	case partOf:
		return strings.Contains(text, wanted)
	case beginsWith:
		return text != "" && strings.HasPrefix(text, strings.TrimSuffix(wanted, "*"))
	}
	return text == wanted
}

// check returns the rule that the terms of a stored query break.
func (t Term) check() error {
	_, err := fieldNamed(t.Field)
	return err
}

// OnlyQueues and OnlyTenants narrow the query to names that match a pattern: a name, or its beginning and a *. No
// patterns narrow nothing.
func (q Query) OnlyQueues(patterns []string) Query { return q.only("queue", patterns) }

// OnlyTenants narrows the query as [Query.OnlyQueues] does.
func (q Query) OnlyTenants(patterns []string) Query { return q.only("tenant", patterns) }

func (q Query) only(field string, patterns []string) Query {
	if len(patterns) == 0 {
		return q
	}
	term := Term{Field: field}
	for _, pattern := range patterns {
		if strings.HasSuffix(pattern, "*") {
			term.Values = append(term.Values, beginsWith+pattern)
		} else {
			term.Values = append(term.Values, equalTo+pattern)
		}
	}
	q.Terms = append(slices.Clone(q.Terms), term)
	return q
}
