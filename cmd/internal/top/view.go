package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/stat"
)

// The usual size of a terminal, for a terminal that reports none.
const (
	usualWidth  = 80
	usualHeight = 24
)

var (
	bold    = lipgloss.NewStyle().Bold(true)
	faint   = lipgloss.NewStyle().Faint(true)
	reverse = lipgloss.NewStyle().Reverse(true)
	warning = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	alarm   = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
)

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	v.WindowTitle = "sluice top"
	return v
}

// screen returns exactly as many lines as the terminal has.
func (m *model) screen() string {
	width, height := m.width, m.height
	if width <= 0 || height <= 0 {
		width, height = usualWidth, usualHeight
	}
	body := height - 3
	lines := []string{m.title(), m.totals()}
	switch {
	case m.help:
		lines = append(lines, helpLines...)
	case m.inspects:
		lines = append(lines, m.inspected()...)
	default:
		lines = append(lines, m.overview(body)...)
	}
	lines = append(lines, make([]string, height)...)[:height-1]
	lines = append(lines, m.lastLine())
	for i, line := range lines {
		lines[i] = lipgloss.NewStyle().Inline(true).MaxWidth(width).Render(line)
	}
	return strings.Join(lines, "\n")
}

func (m *model) title() string {
	s := m.snapshot
	if s.at.IsZero() && m.failed == nil {
		return bold.Render("sluice top") + "  " + m.options.Label + "  looking …"
	}
	text := bold.Render("sluice top") + "  " + m.options.Label + "  "
	if !s.at.IsZero() {
		text += s.at.Format(time.TimeOnly) + "  " + faint.Render("read in "+draw.FineDuration(s.took))
	}
	if m.failed != nil {
		text += "  " + alarm.Render("no answer for "+draw.FineDuration(time.Since(m.since)))
	}
	return text
}

// totals is one line about all queues.
func (m *model) totals() string {
	var ready, flight, dead, uncertain int
	var in, done float64
	for _, q := range m.snapshot.queues {
		ready += q.Depth.Ready
		flight += q.InFlight
		dead += q.Depth.Dead
		uncertain += q.Depth.Uncertain
		in += perSecond(q.Counts.Enqueued, q.Summary)
		done += q.Rate
	}
	shown := "queues " + draw.ShortCount(len(m.snapshot.queues))
	if m.snapshot.more { // the figures are of the shown queues only
		shown += "+"
	}
	parts := []string{
		shown, "ready " + draw.ShortCount(ready), "in flight " + draw.ShortCount(flight),
		fmt.Sprintf("in %s/s", rate(in)), fmt.Sprintf("done %s/s", rate(done)), styled(dead > 0, warning, "dead "+draw.ShortCount(dead)),
	}
	if firing := m.firing(); firing > 0 {
		parts = append(parts, alarm.Render("ALERTS "+draw.ShortCount(firing)))
	}
	if uncertain > 0 {
		parts = append(parts, alarm.Render("uncertain "+draw.ShortCount(uncertain)))
	}
	if !m.snapshot.at.IsZero() && !m.snapshot.tended {
		parts = append(parts, alarm.Render("NO UPKEEP"))
	}
	return strings.Join(parts, "  ")
}

func (m *model) firing() (n int) {
	for _, a := range m.snapshot.alerts {
		if a.State == alert.Firing {
			n++
		}
	}
	return n
}

func perSecond(n int64, s stat.Summary) float64 {
	if window := s.To.Sub(s.From).Seconds(); window > 0 {
		return float64(n) / window
	}
	return 0
}

// lastLine is the open question, the result of the last act, or the keys.
func (m *model) lastLine() string {
	switch {
	case m.asks != nil:
		return bold.Render(m.asks.text+": ") + m.asks.answer + reverse.Render(" ") + faint.Render("  Enter does it, Esc leaves")
	case m.told != "":
		return bold.Render(oneLine(m.told))
	case m.failed != nil:
		return alarm.Render(oneLine(m.failed.Error()))
	}
	return faint.Render("↑↓ choose  Enter inspect  p pause  r resume  Tab lower half  ? help  q quit")
}

var helpLines = []string{
	"", bold.Render("Keys"),
	"  ↑ ↓ k j   choose a queue", "  Enter     look at it closely: the last hour, its settings, its dead letters", "  Esc       back",
	"  p         pause the queue; what runs goes on", "  r         resume it", "  Tab       the lower half: workers, tenants at their limit, alerts",
	"  q         quit", "", bold.Render("Words"),
	"  OLDEST    how long the job that waits longest has been due",
	"  FLIGHT    jobs in the hands of workers or engines, and how many may be",
	"  IN DONE   jobs enqueued and completed per second, over the last minute, and how many may be",
	"  P95       19 of 20 jobs took less, from claim to end",
	"  unserved  jobs are ready, and nobody claims them",
}

// row makes a line of a table. A cell with a positive width is right-aligned, any other
// left-aligned.
func row(widths []int, cells ...string) string {
	var b strings.Builder
	for i, cell := range cells {
		width := widths[i]
		wide := max(width, -width)
		cell = fitted(cell, wide)
		blanks := strings.Repeat(" ", wide-lipgloss.Width(cell))
		if width > 0 {
			b.WriteString(blanks + cell + " ")
		} else {
			b.WriteString(cell + blanks + " ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// fitted shortens a text to a width in the middle, because names differ at their ends.
func fitted(text string, width int) string {
	runes := []rune(oneLine(text))
	if len(runes) <= width || width < 3 {
		return string(runes)
	}
	head := (width - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}

func styled(is bool, style lipgloss.Style, text string) string {
	if is {
		return style.Render(text)
	}
	return text
}

func oneLine(text string) string { return sluice.Brief(text) }

// bounded is count for a number at which counting may have stopped.
func bounded(n int) string {
	if n >= sluice.DepthLimit {
		return draw.ShortCount(n) + "+"
	}
	return draw.ShortCount(n)
}

func rate(perSecond float64) string {
	if perSecond >= 100 || perSecond == 0 {
		return draw.ShortCount(int(perSecond + 0.5))
	}
	return strconv.FormatFloat(perSecond, 'f', 1, 64)
}
