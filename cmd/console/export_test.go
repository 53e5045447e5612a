package console

import (
	"regexp"
	"time"

	"github.com/sluice-queue/sluice/deadletter"
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

// SparkOfDeaths returns the parts of the small picture of a group's hours.
func SparkOfDeaths(hours ...int) []string {
	return deadGroup{Group: deadletter.Group{Hours: hours}}.Spark().Lines
}
