package console

import (
	"regexp"
	"time"

	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/stat"
)

// WaitForReadings sets how long a page waits for a reading.
func (c *Console) WaitForReadings(most time.Duration) { c.patience = most }

// SaveAtMost bounds the files of all that match.
func (c *Console) SaveAtMost(jobs int) { c.mostSaved = jobs }

// RoutesOfReasons maps the acts that ask for a reason to the routes that get it.
func RoutesOfReasons() map[string]string {
	routes := make(map[string]string)
	for _, a := range acts() {
		if !a.noReason {
			routes[a.name] = a.route
		}
	}
	return routes
}

// MissingInCommands lists the fields that the command of an act lacks, and the reason, as ACT NAME.
func MissingInCommands() (missing []string) {
	for _, a := range acts() {
		names := []string{"reason"}
		if a.noReason {
			names = nil
		}
		for _, f := range a.fields {
			names = append(names, f.name)
		}
		for _, name := range names {
			if a.command != "" && !regexp.MustCompile(`\{`+name+`[*+]?\}`).MatchString(a.command) {
				missing = append(missing, a.name+" "+name)
			}
		}
	}
	return missing
}

// SparkOf returns the parts of the small picture of values.
func SparkOf(values ...*float64) []string {
	return sparkOf(chart{Lines: []line{{Values: values}}}, "", 0).Lines
}

// NewestRate returns the last value of a chart of which one slot has begun, with so many completed jobs. Nil: it has none.
func NewestRate(every, passed time.Duration, completed int64) *float64 {
	began := time.Unix(1_800_000_000, 0)
	s := series{Counted: true, Every: every.Seconds(), From: began, To: began.Add(passed), Slots: []slot{{At: began, Counts: stat.Counts{Completed: completed}}}}
	values := s.chart("", "", "", lineOf{"", perSecond(func(c stat.Counts) int64 { return c.Completed })}).Lines[0].Values
	if len(values) == 0 {
		return nil
	}
	return values[len(values)-1]
}

// SparkOfDeaths returns the parts of the small picture of a group's hours.
func SparkOfDeaths(hours ...int) []string {
	return deadGroup{Group: deadletter.Group{Hours: hours}}.Spark().Lines
}

// Curl is a request to the API as a command.
var Curl = curl
