package sluice

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate limits how many jobs start per time: at most Jobs in any window of length Per, plus the burst of the
// settings. The zero value is no limit.
type Rate struct {
	// Jobs is how many jobs may start in one window.
	Jobs int
	// Per is the length of the window, in whole milliseconds.
	Per time.Duration
}

// maxRate is the most jobs per second of a rate, and maxRatePer the longest window.
const (
	maxRate    = 1_000_000
	maxRatePer = 3650 * day
)

// RatePerSecond returns the rate of this many jobs per second. If jobs is not a whole number, the window is longer
// than 1 s, so that Jobs is whole. 0 or less is no limit.
func RatePerSecond(jobs float64) Rate { return rateFrom(jobs, time.Second) }

// rateFrom returns the rate of a number of jobs, whole or not, per time.
func rateFrom(jobs float64, per time.Duration) Rate {
	if !(jobs > 0) {
		return Rate{}
	}
	if whole, near := nearlyWhole(jobs); near {
		return Rate{whole, per}
	}
	if jobs < 1 {
		millis := math.Ceil(float64(per.Milliseconds())/jobs - 1e-6)
		return Rate{1, time.Duration(math.Min(millis, float64(maxRatePer.Milliseconds()))) * time.Millisecond}
	}
	for _, k := range []int{2, 4, 5, 8, 10, 20, 50, 100} {
		if whole, near := nearlyWhole(jobs * float64(k)); near {
			return Rate{whole, time.Duration(k) * per}
		}
	}
	return Rate{int(1000 * jobs), 1000 * per}
}

// nearlyWhole rounds a number, and reports whether it was nearly whole.
func nearlyWhole(number float64) (whole int, near bool) {
	rounded := math.Round(number)
	return int(rounded), rounded >= 1 && math.Abs(number-rounded) < 1e-9*rounded
}

// storedRate returns the rate that a store keeps as jobs per second and a window. If the two do not make whole
// jobs, because somebody stored one of them alone, the window is longer.
func storedRate(perSecond float64, per time.Duration) Rate {
	if per <= 0 {
		per = time.Second
	}
	return rateFrom(perSecond*per.Seconds(), per)
}

// StoredRate returns the rate that a store keeps as jobs per second and as the window in milliseconds.
func StoredRate(perSecond float64, perMillis int64) Rate {
	return storedRate(perSecond, time.Duration(min(max(perMillis, 0), maxRatePer.Milliseconds()))*time.Millisecond)
}

// Columns returns a rate as stores keep it: jobs per second, and the window in milliseconds. A nil rate returns nil
// twice.
func (r *Rate) Columns() (perSecond *float64, perMillis *int64) {
	if r == nil {
		return nil, nil
	}
	return new(r.PerSecond()), new(r.perMillis())
}

// perMillis returns the window as stores keep it. The window of no limit is 1 s.
func (r Rate) perMillis() int64 { return cmp.Or(r.Per, time.Second).Milliseconds() }

// setStored takes the jobs per second, a float64, or afterwards the window in milliseconds, an int64. It reports
// whether the value is valid.
func (r *Rate) setStored(stored any) bool {
	switch number := stored.(type) {
	case float64:
		*r = storedRate(number, time.Second)
		return number >= 0 && number <= maxRate
	case int64:
		*r = StoredRate(r.PerSecond(), number)
		return number > 0 && number <= maxRatePer.Milliseconds()
	}
	return false
}

// PerSecond returns how many jobs the rate allows per second, on average. 0: no limit.
func (r Rate) PerSecond() float64 {
	if r.Jobs <= 0 || r.Per <= 0 {
		return 0
	}
	return float64(r.Jobs) / r.Per.Seconds()
}

// Tokens returns how many jobs may start at once after a lull. It is the larger of 1 % of the jobs of a window and
// the jobs of 50 ms. It is at least 1, at least burst, and without a burst at most Jobs.
//
// Because Tokens is small, starts spread over the window and do not crowd at its beginning.
func (r Rate) Tokens(burst int) float64 {
	share := math.Floor(math.Max(float64(r.Jobs)/100, r.PerSecond()/20))
	return math.Max(math.Min(math.Max(1, share), float64(r.Jobs)), float64(burst))
}

// IsZero reports whether there is no limit.
func (r Rate) IsZero() bool { return r.PerSecond() == 0 }

// Fits reports whether stores can keep a rate. It is zero, or has at least one job, whole milliseconds, and at most
// 1,000,000 jobs per second.
func (r Rate) Fits() bool {
	return r == Rate{} || r.Jobs > 0 && r.Per >= time.Millisecond && r.Per%time.Millisecond == 0 && r.Per <= maxRatePer && r.PerSecond() <= maxRate
}

// ParseRate reads a number per time: 100/s, 20/m, 3/h or 500/5s. A number alone is per second.
func ParseRate(text string) (Rate, error) {
	number, per, found := strings.Cut(strings.TrimSpace(text), "/")
	count, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(count) || math.IsInf(count, 0) {
		return Rate{}, fmt.Errorf("%.60q does not begin with a number", text)
	}
	if count < 0 || count > math.MaxInt32 {
		return Rate{}, fmt.Errorf("%.60q does not begin with a number from 0 to %d", text, math.MaxInt32)
	}
	if !found {
		per = "s"
	}
	window, err := perTime(strings.TrimSpace(per))
	if err != nil {
		return Rate{}, fmt.Errorf("%.60q does not end with a time: %w", text, err)
	}
	return rateFrom(count, window), nil
}

// perTime reads the time after the slash: a unit or a duration.
func perTime(text string) (time.Duration, error) {
	if text != "" && (text[0] < '0' || text[0] > '9') {
		text = "1" + text
	}
	d, err := ParseDuration(text)
	switch {
	case err != nil:
	case d <= 0:
		err = errors.New("it must be longer than nothing")
	case d%time.Millisecond != 0, d > maxRatePer:
		err = fmt.Errorf("it must be whole milliseconds, and at most %s", FormatDuration(maxRatePer))
	}
	return d, err
}

// String writes the rate as [ParseRate] reads it: 100/s, 20/m, 500/5s.
func (r Rate) String() string {
	if r.IsZero() {
		return "0"
	}
	per := FormatDuration(r.Per)
	if unit, one := strings.CutPrefix(per, "1"); one && len(unit) == 1 {
		per = unit
	}
	return strconv.Itoa(r.Jobs) + "/" + per
}

// MarshalJSON writes the rate as a text, such as "500/5s".
func (r Rate) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// UnmarshalJSON reads the rate from a text, or from a number of jobs per second.
func (r *Rate) UnmarshalJSON(text []byte) error {
	var perSecond float64
	if json.Unmarshal(text, &perSecond) == nil {
		*r = RatePerSecond(perSecond)
		return nil
	}
	var written string
	if err := json.Unmarshal(text, &written); err != nil {
		return err
	}
	var err error
	*r, err = ParseRate(written)
	return err
}
