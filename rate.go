package sluice

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is how many jobs may be claimed per second; 0: no limit.
type Rate float64

// ParseRate reads a number per time: 100/s, 20/m, 3/h or, as the source designs say it, 500/5s
// (D-36). A number alone is per second.
func ParseRate(text string) (Rate, error) {
	number, per, found := strings.Cut(strings.TrimSpace(text), "/")
	count, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(count) || math.IsInf(count, 0) {
		return 0, fmt.Errorf("%.60q does not begin with a number", text)
	}
	if !found {
		return Rate(count), nil
	}
	time, err := perTime(strings.TrimSpace(per))
	if err != nil {
		return 0, fmt.Errorf("%.60q does not end with a time: %w", text, err)
	}
	return Rate(count / time.Seconds()), nil
}

// perTime reads what stands behind the stroke: a unit, or a duration.
func perTime(text string) (time.Duration, error) {
	if text != "" && (text[0] < '0' || text[0] > '9') {
		text = "1" + text
	}
	d, err := ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("it must be longer than nothing")
	}
	return d, err
}

// String writes the rate by the largest count that is whole: 100/s, 20/m, 3/h.
func (r Rate) String() string {
	if r == 0 {
		return "0"
	}
	for _, unit := range []struct {
		name    string
		seconds float64
	}{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}} {
		count := float64(r) * unit.seconds
		if whole := math.Round(count); whole >= 1 && math.Abs(count-whole) < 1e-9*whole {
			return strconv.FormatFloat(whole, 'f', -1, 64) + "/" + unit.name
		}
	}
	return strconv.FormatFloat(float64(r), 'g', -1, 64) + "/s"
}
