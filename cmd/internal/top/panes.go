package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/stat"
)

// queueWidths are the column widths of the table of queues: 79 columns with the cursor before them.
var queueWidths = []int{-13, -8, 7, 6, 9, 6, 9, 6, 5}

// overview is the table of queues, with a pane below.
func (m *model) overview(height int) []string {
	below := m.below()
	room := max(height-1-min(len(below), height/2), 3)
	lines := []string{bold.Render("  " + row(queueWidths, "QUEUE", "STATE", "READY", "OLDEST", "FLIGHT", "IN/S", "DONE/S", "P95", "DEAD"))}
	first, last := window(len(m.snapshot.queues), m.place(), room-1)
	for _, q := range m.snapshot.queues[first:last] {
		lines = append(lines, m.queueLine(q))
	}
	if len(m.snapshot.queues) == 0 && !m.snapshot.at.IsZero() {
		lines = append(lines, "  no queues; `sluice enqueue QUEUE PAYLOAD` makes one")
	}
	if rest := len(m.snapshot.queues) - last; rest > 0 {
		lines = append(lines, faint.Render(fmt.Sprintf("  … and %d more", rest)))
	}
	if left := height - len(lines); len(below) > left {
		below = append(below[:max(left-1, 0)], faint.Render("  … and more"))
	}
	return append(lines, below...)
}

// window returns which of n lines to show in a room, including the line at place.
func window(n, place, room int) (first, last int) {
	if n <= room+1 {
		return 0, n
	}
	first = min(max(place-room/2, 0), n-room)
	return first, first + room
}

// oldest returns how long the longest-waiting job has been due. "-": no job is due.
func (q queueRow) oldest() string {
	if q.OldestAge <= 0 && q.Depth.Ready == 0 {
		return "-"
	}
	return draw.FineDuration(q.OldestAge)
}

func (m *model) queueLine(q queueRow) string {
	state := q.state()
	flight := bounded(q.InFlight)
	if q.Settings.Concurrency > 0 {
		flight += "/" + draw.ShortCount(q.Settings.Concurrency)
	}
	done := rate(q.Rate)
	if !q.Settings.Rate.IsZero() {
		done += "/" + rate(q.Settings.Rate.PerSecond())
	}
	p95 := "-"
	if q.Run.P95 > 0 {
		p95 = draw.FineDuration(q.Run.P95)
	}
	came := rate(perSecond(q.Counts.Enqueued, q.Summary))
	switch {
	case !q.Counted && q.workers > 0:
		came, done = "not", "counted" // above each other in two columns
	case !q.Counted:
		came, done = "-", "-"
	}
	text := row(queueWidths, q.name(), state, bounded(q.Depth.Ready), q.oldest(), flight, came, done, p95, bounded(q.Depth.Dead))
	switch {
	case q.name() == m.chosen:
		return reverse.Render("▸ " + text)
	case state == "unserved" || state == "wrong":
		return "  " + alarm.Render(text)
	case state == "paused" || q.Depth.Dead > 0:
		return "  " + warning.Render(text)
	}
	return "  " + text
}

// below is the chosen pane with its title.
func (m *model) below() []string {
	switch m.pane {
	case paneTenants:
		return m.tenantLines()
	case paneAlerts:
		return m.alertLines()
	}
	return m.holderLines()
}

var holderWidths = []int{-10, -24, -20, 9, 6}

func (m *model) holderLines() []string {
	lines := []string{"", bold.Render("  " + row(holderWidths, "ROLE", "HOLDER", "QUEUES", "SLOTS", "SEEN"))}
	for _, h := range m.snapshot.holders {
		slots := "-"
		if h.Slots > 0 {
			slots = fmt.Sprintf("%d/%d", h.Busy, h.Slots)
		}
		line := "  " + row(holderWidths, h.Role, h.ID, strings.Join(h.Queues, " "), slots, draw.FineDuration(max(m.snapshot.at.Sub(h.Seen), 0)))
		if len(h.Conditions) > 0 {
			line = alarm.Render(line)
		}
		for _, c := range h.Conditions {
			line += "\n" + alarm.Render("    "+oneLine(c.String()))
		}
		lines = append(lines, strings.Split(line, "\n")...)
	}
	if len(m.snapshot.holders) == 0 && !m.snapshot.at.IsZero() {
		lines = append(lines, warning.Render("  nobody works: `sluice work QUEUE -- COMMAND` starts a worker, `sluice upkeep` upkeep"))
	}
	return lines
}

var tenantWidths = []int{-24, -24, 12, 10}

func (m *model) tenantLines() []string {
	lines := []string{"", bold.Render("  " + row(tenantWidths, "TENANT", "QUEUE", "FLIGHT", "RATE"))}
	for _, t := range m.snapshot.tenants {
		flight, limit := draw.ShortCount(t.InFlight), "-"
		if t.EffectiveLimits.Concurrency > 0 {
			flight += "/" + draw.ShortCount(t.EffectiveLimits.Concurrency)
		}
		if !t.EffectiveLimits.Rate.IsZero() {
			limit = t.EffectiveLimits.Rate.String()
		}
		lines = append(lines, "  "+styled(t.full(), warning, row(tenantWidths, t.Tenant, t.queue, flight, limit)))
	}
	if len(m.snapshot.tenants) == 0 {
		lines = append(lines, "  no tenant has jobs in flight")
	}
	return lines
}

var alertWidths = []int{-9, -8, -20, -16, 9, 6}

func (m *model) alertLines() []string {
	lines := []string{"", bold.Render("  " + row(alertWidths, "ALERT", "SEVERITY", "RULE", "QUEUE", "VALUE", "SINCE"))}
	for _, a := range m.snapshot.alerts {
		text := row(alertWidths, string(a.State), string(a.Severity), a.Rule, a.Queue, strconv.FormatFloat(a.Value, 'g', 5, 64), draw.FineDuration(max(m.snapshot.at.Sub(a.Since), 0)))
		style := warning
		switch {
		case a.State != alert.Firing:
			style = faint
		case a.Severity == health.SeverityCritical || a.Severity == health.SeverityError:
			style = alarm
		}
		lines = append(lines, "  "+style.Render(text))
	}
	if len(m.snapshot.alerts) == 0 {
		lines = append(lines, "  none fires and none is pending; `sluice alerts rules` lists what is looked at")
	}
	return lines
}

// inspected is the view of the chosen queue alone.
func (m *model) inspected() []string {
	at := m.place()
	if at < 0 {
		return []string{"", "  there is no queue " + m.chosen + " any more"}
	}
	q := m.snapshot.queues[at]
	lines := []string{"", bold.Render("  "+q.name()) + "  " + q.state(), ""}
	d := q.Depth
	lines = append(lines,
		fmt.Sprintf("  ready %s  scheduled %s  blocked %s  claimed %s  dispatched %s", bounded(d.Ready), bounded(d.Scheduled), bounded(d.Blocked), bounded(d.Claimed), bounded(d.Dispatched)),
		fmt.Sprintf("  uncertain %s  dead %s  oldest due %s", bounded(d.Uncertain), bounded(d.Dead), q.oldest()),
		"  "+flowText(q.Settings), "")
	lines = append(lines, m.hourLines()...)
	return append(lines, m.deadLines()...)
}

// flowText describes the limits of a queue.
func flowText(s sluice.Settings) string {
	parts := []string{}
	if !s.Rate.IsZero() {
		parts = append(parts, fmt.Sprintf("rate %s", s.Rate))
	}
	if s.Concurrency > 0 {
		parts = append(parts, "in flight at most "+draw.ShortCount(s.Concurrency))
	}
	if s.TenantConcurrency > 0 {
		parts = append(parts, "per tenant "+draw.ShortCount(s.TenantConcurrency))
	}
	if s.Engine != "" {
		parts = append(parts, "engine "+s.Engine)
	}
	if len(parts) == 0 {
		return "no limits"
	}
	return strings.Join(parts, "  ")
}

// hourLines describe the queue's last hour.
func (m *model) hourLines() []string {
	h := m.detail.hour
	if h.Queue != m.chosen {
		return []string{"  looking …", ""}
	}
	if !h.Counted {
		return []string{bold.Render("  the last hour"), "  " + stat.NotCounted, ""}
	}
	done, came := make([]float64, 60), make([]float64, 60)
	from := m.snapshot.at.Add(-time.Hour)
	for _, s := range h.Slots {
		if i := int(s.At.Sub(from).Minutes()); i >= 0 && i < len(done) {
			done[i] += float64(s.Counts.Completed)
			came[i] += float64(s.Counts.Enqueued)
		}
	}
	return []string{
		bold.Render("  the last hour"),
		fmt.Sprintf("  success %s  leases expired %s  failed attempts %s", draw.Share(1, h.SuccessRate, h.Counts.Completed+h.Counts.Dead),
			draw.Share(2, h.LeaseExpiryRate, h.Counts.Claimed), draw.ShortCount(int(h.Counts.Failed))),
		fmt.Sprintf("  wait p50 %s p95 %s p99 %s   run p50 %s p95 %s p99 %s", draw.FineDuration(h.Wait.P50), draw.FineDuration(h.Wait.P95), draw.FineDuration(h.Wait.P99), draw.FineDuration(h.Run.P50), draw.FineDuration(h.Run.P95), draw.FineDuration(h.Run.P99)),
		"  in   " + draw.Sparkline(came), "  done " + draw.Sparkline(done), "",
	}
}

func (m *model) deadLines() []string {
	if len(m.detail.dead) == 0 {
		return nil
	}
	lines := []string{bold.Render("  the newest dead letters")}
	for _, j := range m.detail.dead {
		lines = append(lines, fmt.Sprintf("  %s  %s ago  %s", j.ID, draw.FineDuration(max(time.Since(j.FinishedAt), 0)), oneLine(j.Error)))
	}
	return lines
}
