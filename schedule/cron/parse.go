// Package cron says at which instants a cron expression fires in a time zone, on days when clocks change too.
//
// Begin with [Parse]. [Expression].Next returns the next instant. The rules for changing clocks:
//
//   - An expression whose hour field begins with `*` fires whenever the local clock shows a matching time. So `0 * * * *`
//     fires every real hour.
//   - Any other expression has fixed times. A time that the clock skips fires at the first instant after the gap. A time
//     that the clock shows twice fires the first time only.
package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Expression is a parsed cron expression.
type Expression struct {
	second, minute, hour, day, month, weekday uint64 // one bit per matching value
	anyDay, anyWeekday                        bool   // the field begins with `*`: it restricts no day by itself
	everyHour                                 bool   // the hour field begins with `*`
}

// field is the place of a value in an expression.
type field struct {
	name     string
	min, max int
	names    string // three letters each, from min
}

var fields = []field{
	{"second", 0, 59, ""},
	{"minute", 0, 59, ""},
	{"hour", 0, 23, ""},
	{"day of month", 1, 31, ""},
	{"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
	{"day of week", 0, 7, "sunmontuewedthufrisat"},
}

var shorthands = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// Error says which part of an expression breaks which rule.
type Error struct {
	// Expression is the whole expression, and Part the wrong part of it. Field is the part's field; empty: all of it.
	Expression, Part, Field string
	// Rule is what the part must be.
	Rule string
}

// Error returns the text.
func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("cron expression %q must %s", e.Expression, e.Rule)
	}
	return fmt.Sprintf("cron expression %q: %s: %q must %s", e.Expression, e.Field, e.Part, e.Rule)
}

// Parse reads an expression of 5 fields (minute, hour, day of month, month, day of week), of 6 fields with the second
// first, or a shorthand such as `@daily`. A field is `*`, a value, a range `1-5`, each with a step such as `*/2`, or a list
// of these. Months and days of the week may be three letters; 0 and 7 are Sunday. If both the day of month and the day of
// week are restricted, a day must match one of them, as in every cron.
//
// The error is an *[Error].
func Parse(expression string) (Expression, error) {
	text := strings.ToLower(strings.TrimSpace(expression))
	if strings.HasPrefix(text, "@") {
		long, known := shorthands[text]
		if !known {
			return Expression{}, &Error{Expression: expression, Rule: "be one of @yearly, @monthly, @weekly, @daily and @hourly, or have 5 or 6 fields"}
		}
		text = long
	}
	parts := strings.Fields(text)
	if len(parts) == 5 {
		parts = append([]string{"0"}, parts...)
	}
	if len(parts) != len(fields) {
		return Expression{}, &Error{Expression: expression, Rule: fmt.Sprintf("have 5 or 6 fields, and has %d", len(parts))}
	}
	var sets [6]uint64
	for i, part := range parts {
		set, rule := fields[i].parse(part)
		if rule != "" {
			return Expression{}, &Error{Expression: expression, Part: part, Field: fields[i].name, Rule: rule}
		}
		sets[i] = set
	}
	sets[5] = (sets[5] | sets[5]>>7) &^ (1 << 7) // 7 is Sunday too
	spec := Expression{
		second: sets[0], minute: sets[1], hour: sets[2], day: sets[3], month: sets[4], weekday: sets[5],
		anyDay: isAny(parts[3]), anyWeekday: isAny(parts[5]), everyHour: isAny(parts[2]),
	}
	if !spec.everFires() {
		return Expression{}, &Error{Expression: expression, Part: parts[3], Field: "day of month", Rule: "be a day that one of the months has"}
	}
	return spec, nil
}

func isAny(part string) bool { return strings.HasPrefix(part, "*") || part == "?" }

// everFires reports whether one of the months has one of the days.
func (s Expression) everFires() bool {
	if s.anyDay || !s.anyWeekday {
		return true
	}
	first := bits.TrailingZeros64(s.day)
	for month := 1; month <= 12; month++ {
		if s.month&(1<<month) != 0 && first <= longest(month) {
			return true
		}
	}
	return false
}

// longest returns the most days that a month has.
func longest(month int) int {
	switch month {
	case 2:
		return 29
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// parse reads one field. Rule is what it breaks; empty: nothing.
func (f field) parse(text string) (set uint64, rule string) {
	for part := range strings.SplitSeq(text, ",") {
		more, rule := f.parseRange(part)
		if rule != "" {
			return 0, rule
		}
		set |= more
	}
	return set, ""
}

func (f field) parseRange(text string) (set uint64, rule string) {
	span, stepText, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		var err error
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.max {
			return 0, fmt.Sprintf("have a step of 1 to %d after `/`", f.max)
		}
	}
	from, to := f.min, f.max
	switch {
	case span == "*", span == "?" && !stepped:
	default:
		first, last, ranged := strings.Cut(span, "-")
		var known bool
		if from, known = f.value(first); !known {
			return 0, f.rule()
		}
		switch {
		case ranged:
			if to, known = f.value(last); !known {
				return 0, f.rule()
			}
		case !stepped: // `3/5` is 3 to the end
			to = from
		}
		if from > to {
			return 0, "be a range from the lower value to the higher"
		}
	}
	for v := from; v <= to; v += step {
		set |= 1 << v
	}
	return set, ""
}

func (f field) rule() string {
	text := fmt.Sprintf("be `*`, %d to %d, a range or a list", f.min, f.max)
	if f.names != "" {
		text += ", or a name of three letters"
	}
	return text
}

func (f field) value(text string) (int, bool) {
	if n, err := strconv.Atoi(text); err == nil && text[0] != '+' && text[0] != '-' {
		return n, f.min <= n && n <= f.max
	}
	if at := strings.Index(f.names, text); len(text) == 3 && at >= 0 && at%3 == 0 {
		return f.min + at/3, true
	}
	return 0, false
}
