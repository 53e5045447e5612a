package alert

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// worded returns the rule with the sentence of its preset, in which the figures of the rule stand. A rule of a person, or
// one that compares another metric, keeps its sentence.
func (r Rule) worded() Rule {
	for _, preset := range alertPresets {
		if preset.Name == r.Name && preset.Metric == r.Metric {
			r.Summary = r.fill(preset.Summary)
		}
	}
	return r
}

// follow rewrites the sentence of a rule after its figures changed, if the sentence was the preset's with the figures
// before. A sentence of somebody's own stays. With another metric, no sentence of the preset fits.
func (r Rule) follow(before Rule) Rule {
	switch {
	case !r.Preset() || r.Summary != before.Summary || before.worded().Summary != before.Summary:
		return r
	case r.Metric != before.Metric:
		r.Summary = r.Name
		return r
	}
	return r.worded()
}

// fill writes the figures of a rule into a sentence: {than} with the threshold in its unit, {window} and {for}.
func (r Rule) fill(sentence string) string {
	than := "more than "
	if r.Op == "<" {
		than = "less than "
	}
	return strings.NewReplacer(
		"{than}", than+r.threshold(), "{window}", sluice.FormatDuration(r.Window), "{for}", sluice.FormatDuration(r.For),
	).Replace(sentence)
}

// threshold writes the threshold in the unit of its metric.
func (r Rule) threshold() string {
	metric, _ := MetricNamed(r.Metric)
	switch metric.Unit {
	case "seconds":
		if d := time.Duration(r.Threshold * float64(time.Second)); d >= 0 && r.Threshold < 1e9 {
			return sluice.FormatDuration(d.Round(time.Millisecond))
		}
	case "share":
		return strconv.FormatFloat(100*r.Threshold, 'g', 6, 64) + " %"
	case "bytes":
		if r.Threshold >= 1<<30 {
			return fmt.Sprintf("%.4g GiB", r.Threshold/(1<<30))
		}
		return fmt.Sprintf("%.4g MiB", r.Threshold/(1<<20))
	}
	return figure(r.Threshold) + " " + metric.Unit
}
