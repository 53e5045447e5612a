package console

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/stat"
)

// shares is the picture of who has the jobs in flight, beside what the weights grant.
type shares struct {
	Chart  chart
	Strips []shareStrip
	Legend []string
}

// shareStrip is a bar from 0 to 100 of parts.
type shareStrip struct {
	Name string
	Bars []bar
}

// pausedIn reports whether the tenant is paused in a queue.
func (t tenantRow) pausedIn(queue string) bool {
	return t.Paused() || slices.Contains(t.PausedIn(), queue)
}

// weightIn is the tenant's weight in a queue: the effective one if a job of it is in flight there, else by its limits.
func (t tenantRow) weightIn(queue string) int {
	for _, r := range t.Rows {
		if r.Queue == queue && r.EffectiveLimits.Weight > 0 {
			return r.EffectiveLimits.Weight
		}
	}
	weight := max(1, t.Weight())
	for _, l := range append(slices.Clone(t.TierLimits), t.Limits...) {
		if l.Queue == queue && l.Weight != nil {
			weight = *l.Weight
		}
	}
	return weight
}

// shareOut adds to each tenant its share of the jobs in flight, and the share that its weights grant: the jobs in flight of
// each queue, divided among the tenants that have due jobs or jobs in flight there and are not paused.
func shareOut(tenants []tenantRow) {
	all := 0
	wants := make(map[string][]int) // by queue: the tenants that want its slots
	slots := make(map[string]int)
	for i, t := range tenants {
		for _, r := range t.Rows {
			slots[r.Queue] += r.InFlight
			all += r.InFlight
			if r.InFlight > 0 || r.Due > 0 && !t.pausedIn(r.Queue) {
				wants[r.Queue] = append(wants[r.Queue], i)
			}
		}
	}
	if all == 0 {
		return
	}
	for queue, of := range wants {
		sum := 0
		for _, i := range of {
			sum += tenants[i].weightIn(queue)
		}
		for _, i := range of {
			tenants[i].Granted += float64(slots[queue]*tenants[i].weightIn(queue)) / float64(sum*all)
		}
	}
	for i, t := range tenants {
		for _, r := range t.Rows {
			tenants[i].Share += float64(r.InFlight) / float64(all)
		}
	}
}

// sharesOf draws the shares of tenants, the largest first.
func sharesOf(tenants []tenantRow) (out shares) {
	tenants = slices.Clone(tenants)
	slices.SortStableFunc(tenants, func(a, b tenantRow) int { return cmp.Compare(b.Share+b.Granted, a.Share+a.Granted) })
	out.Chart = chart{Name: "shares", Title: "Shares of the jobs in flight", Unit: "%", CSV: "?csv=shares", Lines: []line{{Name: "has"}, {Name: "by weight"}}}
	out.Strips = []shareStrip{{Name: "has"}, {Name: "by weight"}}
	ends := [2]float64{}
	var most tenantRow
	for _, t := range tenants {
		if t.Share+t.Granted == 0 {
			continue
		}
		out.Chart.Names = append(out.Chart.Names, t.Name)
		colour := min(len(out.Chart.Names), shownQueues+1)
		if len(out.Legend) < colour {
			out.Legend = append(out.Legend, map[bool]string{true: t.Name, false: "other tenants"}[colour <= shownQueues])
		}
		for i, share := range []float64{t.Share, t.Granted} {
			out.Chart.Lines[i].Values = append(out.Chart.Lines[i].Values, rounded(100*share))
			text := fmt.Sprintf("%s %s %s", t.Name, out.Strips[i].Name, percent(share))
			out.Strips[i].Bars = append(out.Strips[i].Bars, bar{X: ends[i], Width: 100 * share, Height: 1, Colour: colour, Text: text})
			ends[i] += 100 * share
		}
		if t.Share-t.Granted > most.Share-most.Granted {
			most = t
		}
	}
	out.Chart.Sentence = "Each tenant has about the share that its weight grants."
	if most.Share-most.Granted >= 0.05 {
		out.Chart.Sentence = fmt.Sprintf("%s has %s of the jobs in flight; by its weight among those who want slots it would have %s.", most.Name, percent(most.Share), percent(most.Granted))
	}
	return out
}

// waitsFor is how long the waits of tenants are shared: they are those of whole hours.
const waitsFor = 30 * time.Second

// addWaits adds how long jobs of tenants waited that started in this hour and the one before, and for how long the tenants were at
// their concurrency in those hours.
func (v *visit) addWaits(ctx context.Context, tenants []tenantRow) error {
	if v.viewer.bounded() {
		return nil
	}
	from := time.Now().Add(-time.Hour).UTC().Truncate(time.Hour)
	var read wire.StatList
	if err := v.getFor(ctx, waitsFor, "/stats", url.Values{"tenants": {"true"}, "levels": {"true"}, "every": {"1h"}, "from": {from.Format(time.RFC3339)}}, &read); err != nil {
		return err
	}
	waits := make(map[string]*stat.Histogram)
	full := make(map[string]map[time.Time]int64) // the looks of each hour, in the queue with the most
	for _, s := range read.Slots {
		if s.Level != nil && s.Level.Full > 0 {
			if full[s.Tenant] == nil {
				full[s.Tenant] = make(map[time.Time]int64)
			}
			full[s.Tenant][s.At] = max(full[s.Tenant][s.At], s.Level.Full)
		}
		if waits[s.Tenant] == nil {
			waits[s.Tenant] = new(stat.Histogram)
		}
		waits[s.Tenant].Merge(s.Wait)
	}
	for i, t := range tenants {
		if h := waits[t.Name]; h != nil && h.Count() > 0 {
			tenants[i].Waited = h.Quantile(0.95)
		}
		for _, looks := range full[t.Name] {
			tenants[i].AtLimit += time.Duration(looks) * time.Minute
		}
	}
	return nil
}

// starves reports whether jobs of it are due, and none started of late.
func (t tenantRow) starves() bool { return t.Waited == 0 && t.Due > 0 }

// WaitWords says how long its jobs waited.
func (t tenantRow) WaitWords() string {
	switch {
	case t.Waited > 0:
		return draw.Duration(t.Waited)
	case t.starves():
		return "none started"
	}
	return ""
}

// order sorts tenants: the busiest first, or those whose jobs wait the longest. Those that have due jobs of which none
// started wait longer than all others.
func order(tenants []tenantRow, by string) {
	waited := func(t tenantRow) time.Duration {
		if by != "wait" {
			return 0
		}
		if t.starves() {
			return math.MaxInt64
		}
		return t.Waited
	}
	slices.SortStableFunc(tenants, func(a, b tenantRow) int {
		return cmp.Or(cmp.Compare(waited(b), waited(a)), cmp.Compare(b.Flight()+b.Due, a.Flight()+a.Due), cmp.Compare(a.Name, b.Name))
	})
}

// orders are the choices of the order.
func (v *visit) orders() []choice {
	by := v.query.Get("sort")
	return []choice{{Text: "busiest first", URL: v.with("sort", ""), Here: by != "wait"}, {Text: "longest wait first", URL: v.with("sort", "wait"), Here: by == "wait"}}
}
