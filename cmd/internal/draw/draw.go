// Package draw formats figures for people: sparklines, bars, numbers, durations and shares. The command line and the
// full-screen view use it, so that a figure looks the same in both.
//
// Begin with [Sparkline], [Count] and [Duration].
package draw

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Missing marks a value that is not known in a sparkline.
const Missing = '·'

// columns are the heights of a sparkline. The lowest is 0.
var columns = []rune("▁▂▃▄▅▆▇█")

// Sparkline draws values as columns. The largest value has full height, and a value above 0 is higher than 0. NaN is
// [Missing].
func Sparkline(values []float64) string {
	most := 0.0
	for _, v := range values {
		if v > most { // false for NaN
			most = v
		}
	}
	var text strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			text.WriteRune(Missing)
		case v <= 0:
			text.WriteRune(columns[0])
		default:
			text.WriteRune(columns[max(int(math.Round(v/most*float64(len(columns)-1))), 1)])
		}
	}
	return text.String()
}

// Blocks draws a length as a bar, to 1/8 of a cell.
func Blocks(length float64) string {
	eighths := int(math.Round(length * 8))
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}

// Total formats how many there are in all. If that is not known, total is the least number if there are more.
func Total(total int, known, more bool) string {
	switch {
	case known:
		return Count(total)
	case more:
		return "at least " + Count(total)
	}
	return "an unknown number"
}

// Count formats a number with blanks between the thousands, such as `12 345`.
func Count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// Plural is a number with its noun, such as `1 job`, `2 batches` or `3 entries`.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	stem, ends := strings.CutSuffix(noun, "y")
	switch {
	case ends && !strings.HasSuffix(stem, "e") && !strings.HasSuffix(stem, "a"):
		return Count(n) + " " + stem + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "ch"):
		return Count(n) + " " + noun + "es"
	}
	return Count(n) + " " + noun + "s"
}

// ShortCount is Count for a narrow column: from 100,000 on it rounds down, such as `123k` and `12M`.
func ShortCount(n int) string {
	switch {
	case n >= 10_000_000:
		return strconv.Itoa(n/1_000_000) + "M"
	case n >= 100_000:
		return strconv.Itoa(n/1000) + "k"
	}
	return Count(n)
}

// Duration formats a duration with 1 or 2 units, such as `2m05s`. Below 1 s the unit is 1 ms.
func Duration(d time.Duration) string {
	switch {
	case d == math.MaxInt64: // the difference of two instants that are further from each other
		return "over 292y"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatInt(int64(d.Seconds()), 10) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return strconv.Itoa(int(d.Hours()/24)) + "d"
}

// FineDuration is Duration for measured times: below 1 ms in µs, below 1 min in tenths of a second.
func FineDuration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + "µs"
	case d >= time.Second && d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return Duration(d)
}

// Share formats a share in percent with some digits. Without a whole there is no share, and Share returns a dash.
func Share(digits int, part float64, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return Percent(digits, part) + " %"
}

// Percent formats a share in percent, without the sign. Less than all is never 100, and more than nothing never 0.
func Percent(digits int, share float64) string { return feature.Percent(digits, share) }

// States formats how many jobs are in which state, in the order of a job's life, such as "300 queued, 17 claimed". Empty: they
// are all in one state, and none is in flight.
func States(jobs map[sluice.State]int) string {
	var words []string
	for _, state := range sluice.States() {
		if n := jobs[state]; n > 0 {
			words = append(words, Count(n)+" "+string(state))
		}
	}
	if len(words) < 2 && jobs[sluice.StateClaimed]+jobs[sluice.StateDispatched] == 0 {
		return ""
	}
	return strings.Join(words, ", ")
}
