package cli

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/forecast"
)

// noTerminal is the width of a chart without a terminal.
const noTerminal = 80

// bar is a line of a histogram.
type bar struct {
	label string
	jobs  int
	text  string
}

// printHistogram draws how many jobs fall due in each bucket, and marks what the limits allow.
func (a *app) printHistogram(f forecast.Forecast) error {
	width := terminalWidth(a.stdout)
	if width == 0 {
		width = noTerminal
	}
	marked := false
	for _, q := range f.Queues {
		var bars []bar
		for _, w := range q.Waves {
			bars = append(bars, barOf(q, w))
		}
		drawn, mark := drawBars(bars, width, throughput(q, f))
		marked = marked || mark
		if _, err := fmt.Fprintf(a.stdout, "%s\n%s", q.Queue, drawn); err != nil {
			return err
		}
	}
	if marked {
		a.note("│ is what the limits let through in a bucket")
	}
	return nil
}

func barOf(q forecast.Queue, w forecast.Bucket) bar {
	out := bar{label: dueAt(waveRow{queue: q, wave: w}), jobs: w.Jobs}
	if w.Jobs > 0 {
		out.text = draw.Count(w.Jobs)
	}
	if w.Span > 0 && w.Backlog > 0 {
		out.text += "  backlog " + draw.Count(w.Backlog)
	}
	if len(w.Tenants) > 0 {
		out.text += "  " + largestShares(w.Tally)
	}
	return out
}

// largestShares names the largest tenants of a bucket.
func largestShares(t forecast.Tally) string {
	var parts []string
	for i, s := range shares(t) {
		if i == 3 {
			parts = append(parts, "…")
			break
		}
		name := s.name
		if name == "" {
			name = "without a tenant"
		}
		parts = append(parts, oneLine(name)+" "+draw.Count(s.jobs))
	}
	return strings.Join(parts, ", ")
}

// throughput is how many jobs the limits allow in a bucket; 0: no limits.
func throughput(q forecast.Queue, f forecast.Forecast) float64 {
	if len(q.Limits) == 0 {
		return 0
	}
	least := math.Inf(1)
	for _, l := range q.Limits {
		least = min(least, l.PerSecond)
	}
	return least * f.Bucket.Seconds()
}

// drawBars makes the lines, as wide as there is room. marked: the throughput lies within the chart and is drawn.
func drawBars(bars []bar, width int, through float64) (text string, marked bool) {
	labels, texts, most := 0, 0, 1
	for _, b := range bars {
		labels, texts, most = max(labels, utf8.RuneCountInString(b.label)), max(texts, utf8.RuneCountInString(b.text)), max(most, b.jobs)
	}
	room := max(10, width-len("  ")-labels-len(" ")-len(" ")-texts)
	mark := -1
	if through > 0 && through <= float64(most) {
		mark = min(room-1, int(through/float64(most)*float64(room)))
	}
	var out strings.Builder
	for _, b := range bars {
		blocks := []rune(draw.Blocks(float64(b.jobs) / float64(most) * float64(room)))
		if b.jobs > 0 && len(blocks) == 0 {
			blocks = []rune("▏")
		}
		if mark >= len(blocks) {
			blocks = append(blocks, []rune(strings.Repeat(" ", mark-len(blocks))+"│")...)
			marked = true
		}
		line := fmt.Sprintf("  %-*s %s", labels, b.label, string(blocks))
		if b.text != "" {
			line += " " + b.text
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String(), marked
}
