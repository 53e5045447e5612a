package console

import (
	"strconv"
	"strings"
)

// cronShorthands are the words of shorthands.
var cronShorthands = map[string]string{
	"@yearly": "each January 1 at 00:00", "@annually": "each January 1 at 00:00", "@monthly": "on day 1 of each month at 00:00",
	"@weekly": "each Sunday at 00:00", "@daily": "each day at 00:00", "@midnight": "each day at 00:00", "@hourly": "each hour at minute 0",
}

var (
	cronDays   = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	cronMonths = []string{"", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
)

// cronWords says a cron expression in words. The expression itself, where it has no simple words.
func cronWords(expression string) string {
	if words, is := cronShorthands[expression]; is {
		return words
	}
	if every, is := strings.CutPrefix(expression, "@every "); is {
		return "every " + every
	}
	fields := strings.Fields(expression)
	if len(fields) == 6 && fields[0] == "0" {
		fields = fields[1:]
	}
	if len(fields) != 5 {
		return expression
	}
	minute, hour, day, month, weekday := fields[0], fields[1], fields[2], fields[3], fields[4]
	words := cronTime(minute, hour)
	if words == "" {
		return expression
	}
	if weekday != "*" && weekday != "?" {
		words += " on " + cronNames(weekday, cronDays)
	}
	if day != "*" && day != "?" {
		words += " on day " + cronNames(day, nil) + " of the month"
	}
	if month != "*" {
		words += " in " + cronNames(month, cronMonths)
	}
	if weekday == "*" && day == "*" && month == "*" && cronNumber(minute) && cronNumber(hour) {
		words = "each day " + words
	}
	return words
}

// cronTime says the minutes and hours of an expression. Empty: they have no simple words.
func cronTime(minute, hour string) string {
	step, isStep := strings.CutPrefix(minute, "*/")
	switch {
	case minute == "*" && hour == "*":
		return "each minute"
	case isStep && hour == "*":
		return "every " + step + " minutes"
	case isStep:
		return "every " + step + " minutes in the hours " + cronNames(hour, nil)
	case minute == "*":
		return "each minute in the hours " + cronNames(hour, nil)
	case !cronNumber(minute):
		return "at the minutes " + cronNames(minute, nil) + " of the hours " + cronNames(hour, nil)
	case hour == "*":
		return "each hour at minute " + minute
	}
	if step, is := strings.CutPrefix(hour, "*/"); is {
		return "every " + step + " hours at minute " + minute
	}
	var times []string
	for one := range strings.SplitSeq(hour, ",") {
		if !cronNumber(one) {
			return "at minute " + minute + " of the hours " + cronNames(hour, nil)
		}
		times = append(times, pad(one)+":"+pad(minute))
	}
	return "at " + strings.Join(times, ", ")
}

func cronNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

func pad(text string) string {
	if len(text) == 1 {
		return "0" + text
	}
	return text
}

// cronNames says a list of numbers and ranges by their names.
func cronNames(list string, names []string) string {
	if list == "*" {
		return "of all"
	}
	var parts []string
	for one := range strings.SplitSeq(list, ",") {
		from, to, is := strings.Cut(one, "-")
		part := cronName(from, names)
		if is {
			part += " to " + cronName(to, names)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func cronName(text string, names []string) string {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < len(names) {
		return names[n]
	}
	for _, name := range names {
		if len(name) > 3 && strings.EqualFold(text, name[:3]) {
			return name
		}
	}
	return text
}
