package checkup

import (
	"fmt"
	"strings"
	"time"
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
