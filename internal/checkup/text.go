package checkup

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/health"
)

// Span formats a duration for a person.
func Span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	case d >= time.Minute && d.Round(time.Second)%time.Minute == 0:
		return strings.TrimSuffix(d.Round(time.Second).String(), "0s")
	case d >= time.Second:
		return d.Round(time.Second).String()
	}
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// Bytes formats a size for a person.
func Bytes(value float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if value < 1000 {
			return fmt.Sprintf("%.3g %s", value, unit)
		}
		value /= 1024
	}
	return fmt.Sprintf("%.3g TiB", value)
}

// Maintained says in a sentence what came of a task of maintenance.
func Maintained(m health.Maintained) string {
	was, bytes := " ", Bytes(float64(max(m.Bytes, 0)))
	if m.DryRun {
		was = " would be "
	}
	switch {
	case m.Task == health.TaskCheckpoint && m.DryRun:
		return "the log has " + bytes
	case m.Task == health.TaskCheckpoint:
		return "the log is " + bytes + " smaller"
	case m.Task == health.TaskRetention:
		return rows(m.Rows, "job") + was + "deleted"
	case len(m.Parts) == 0:
		return bytes + was + "given back to the disk"
	case m.Bytes > 0:
		return rows(m.Rows, "dead row") + was + "removed, and " + bytes + " given back to the disk"
	}
	return rows(m.Rows, "dead row") + was + "removed"
}

// rows counts things for a person.
func rows(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
