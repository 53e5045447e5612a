package httpapi

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
)

// series adds the routes of figures over time.
func (a *API) series() {
	const text = "Slots without any move are missing: nothing happened then, if the figures are counted. The last slot may still grow."
	add(a, Route{
		Method: "GET", Path: "/series", Name: "list-series", Group: "look", Summary: "read the figures of all queues over time",
		Text: text + " They are the sums over the queues.", Needs: access.Look, Commands: []string{"stats"}, scope: ofJobs, noun: "queue",
	}, func(ctx context.Context, c *call, in *SeriesInput) (seriesView, error) {
		filter := stat.Filter{Queues: c.caller.Queues}
		switch tenants := c.caller.Tenants; {
		case len(tenants) > 0 && (in.Tenant == "" || !c.caller.Tenant(in.Tenant)):
			return seriesView{}, outOfBounds("the token is bounded to some tenants; name one of them")
		case len(filter.Queues) > 0:
			known, err := c.knownQueues(ctx)
			if err != nil || len(known) == 0 {
				return seriesView{Slots: []slotView{}}, err
			}
			filter.Queues = known
		}
		return c.series(ctx, filter, in)
	})
	add(a, Route{
		Method: "GET", Path: "/queues/{queue}/series", Name: "get-series", Group: "look", Summary: "read the figures of a queue over time",
		Text: text, Needs: access.Look, Commands: []string{"stats"}, scope: ofQueue, noun: "queue",
	}, func(ctx context.Context, c *call, in *queueSeriesInput) (seriesView, error) {
		if _, err := c.api.client().Queue(ctx, in.Queue); err != nil {
			return seriesView{}, err
		}
		out, err := c.series(ctx, stat.Filter{Queues: []string{in.Queue}}, &in.SeriesInput)
		out.Queue = in.Queue
		return out, err
	})
	a.counts()
}

// counts adds the routes of counts as they are stored, for programs that make figures of them.
func (a *API) counts() {
	add(a, Route{
		Method: "GET", Path: "/stats", Name: "list-stats", Group: "look", Summary: "list the counts of moves by slot of time", Text: "For programs; people want list-series.",
		Needs: access.Look, Commands: []string{"stats"}, noun: "queue",
	}, func(ctx context.Context, c *call, in *slotsInput) (wire.StatList, error) {
		every, err := optional("every", in.Every)
		if err != nil {
			return wire.StatList{}, err
		}
		found, err := stat.Read(ctx, c.api.store, stat.Filter{
			Queues: in.Queues, Tenant: in.Tenant, Tenants: in.Tenants, Levels: in.Levels, Every: every, From: in.From, To: in.To, Limit: in.Limit,
		})
		out := wire.StatList{Slots: make([]wire.StatView, len(found))}
		for i, s := range found {
			out.Slots[i] = wire.StatViewOf(s)
		}
		return out, err
	})
	add(a, Route{
		Method: "GET", Path: "/waves", Name: "list-waves", Group: "look", Summary: "list the jobs that fall due, as upkeep counted them last",
		Text: "For programs; people want list-forecasts.", Needs: access.Look, Commands: []string{"forecast"}, noun: "queue",
	}, func(ctx context.Context, c *call, in *wavesInput) (wire.WaveList, error) {
		ahead, err := optional("ahead", in.Ahead)
		if err != nil {
			return wire.WaveList{}, err
		}
		counts, err := forecast.Read(ctx, c.api.store, forecast.Filter{Queue: in.Queue, Ahead: ahead, Tenants: in.Tenants})
		return wire.WaveListOf(counts), err
	})
}

// slotsInput chooses counts.
type slotsInput struct {
	Queues  []string  `query:"queue,explode" doc:"only these queues" maxItems:"1000"`
	Tenant  string    `query:"tenant" doc:"only this tenant" maxLength:"255"`
	Tenants bool      `query:"tenants" doc:"also the largest tenants"`
	Levels  bool      `query:"levels" doc:"also slots in which no job moved, but jobs were ready"`
	Every   string    `query:"every" doc:"the length of slots: 10s, 1m or 1h; default: for at least 60 slots" maxLength:"20"`
	From    time.Time `query:"from" doc:"where the window begins; default: 1 h before to"`
	To      time.Time `query:"to" doc:"where it ends; default: now"`
	Limit   int       `query:"limit" doc:"the most slots, the oldest first" minimum:"1" maximum:"10000" default:"10000"`
}

// wavesInput chooses counts of the jobs that fall due.
type wavesInput struct {
	Queue   string `query:"queue" doc:"only this queue" maxLength:"64"`
	Ahead   string `query:"ahead" doc:"how far to look, such as 2h; default: as far as is counted" maxLength:"20"`
	Tenants bool   `query:"tenants" doc:"with the figures of tenants"`
}

// useInput says how much to list.
type useInput struct {
	Tenants int `query:"tenants" doc:"the most tenants of each queue, those with the most jobs in flight" minimum:"0" maximum:"10000" default:"20"`
}

// useRoute adds the route of how much of their limits queues use.
func (a *API) useRoute() {
	add(a, Route{
		Method: "GET", Path: "/use", Name: "list-use", Group: "look", Summary: "read how much of their limits queues and tenants use now",
		Text: "Tenants come with their jobs in flight.", Needs: access.Look, Commands: []string{"top"}, scope: ofJobs, noun: "queue",
	}, func(ctx context.Context, c *call, in *useInput) (wire.UseList, error) {
		if len(c.caller.Tenants) > 0 {
			return wire.UseList{}, outOfBounds("the token is bounded to some tenants")
		}
		found, err := c.api.client().Flows(ctx, in.Tenants)
		if err != nil {
			return wire.UseList{}, err
		}
		rates, err := c.ratesOfLate(ctx)
		out := wire.UseList{Queues: []wire.QueueUse{}}
		for _, f := range found {
			if c.caller.Queue(f.Queue) {
				out.Queues = append(out.Queues, wire.QueueUseOf(f, rates.of(f.Queue, claimed), rates.of(f.Queue, completed)))
			}
		}
		return out, err
	})
}

// rates are counts by queue over a while.
type rates struct {
	counts  map[string]stat.Counts
	holders []presence.Holder
	now     time.Time
}

// rateWhile is the while, which ends rateDelay ago: later figures are not complete.
const rateWhile, rateDelay = time.Minute, 20 * time.Second

func claimed(c stat.Counts) int64 { return c.Claimed }

func completed(c stat.Counts) int64 { return c.Completed }

// ratesOfLate reads the counts of the last minute of all queues.
func (c *call) ratesOfLate(ctx context.Context) (out rates, err error) {
	if out.now, err = c.api.store.Now(ctx); err != nil {
		return out, err
	}
	to := out.now.Add(-rateDelay).Truncate(stat.Fine)
	slots, err := stat.Read(ctx, c.api.store, stat.Filter{From: to.Add(-rateWhile), To: to, Every: stat.Fine})
	if err != nil {
		return out, err
	}
	out.counts = make(map[string]stat.Counts)
	for _, s := range slots {
		sum := out.counts[s.Queue]
		sum.Add(s.Counts)
		out.counts[s.Queue] = sum
	}
	out.holders, err = presence.Holders(ctx, c.api.store)
	return out, err
}

// of is a count of a queue per second. Nil: nobody counts.
func (r rates) of(queue string, count func(stat.Counts) int64) *float64 {
	counts, moved := r.counts[queue]
	if !stat.Known(queue, moved, r.holders, r.now) {
		return nil
	}
	perSecond := float64(count(counts)) / rateWhile.Seconds()
	return &perSecond
}

// mostKnown is the most queues that a bounded caller's figures are summed over.
const mostKnown = 1000

// knownQueues lists the queues within the bounds of the caller, at most mostKnown.
func (c *call) knownQueues(ctx context.Context) (names []string, err error) {
	for after := ""; len(names) < mostKnown; {
		page, err := c.api.client().Queues(ctx, sluice.QueueFilter{After: after, Limit: mostKnown})
		if err != nil {
			return nil, err
		}
		for _, q := range page {
			if after = q.Name; c.caller.Queue(q.Name) {
				names = append(names, q.Name)
			}
		}
		if len(page) < mostKnown {
			break
		}
	}
	return names, nil
}

// SeriesInput chooses figures over time.
type SeriesInput struct {
	Window string    `query:"window" doc:"how far back from to, such as 1h; without from" maxLength:"20"`
	From   time.Time `query:"from" doc:"where the window begins; default: 1 h before to"`
	To     time.Time `query:"to" doc:"where it ends; default: now"`
	Slots  int       `query:"slots" doc:"the most slots; neighbours are merged" minimum:"1" maximum:"10000" default:"1000"`
	Tenant string    `query:"tenant" doc:"only this tenant, if it is among the 20 busiest of its queue" maxLength:"200"`
}

// queueSeriesInput chooses figures of a queue over time.
type queueSeriesInput struct {
	SeriesInput
	Queue string `path:"queue" doc:"the queue" maxLength:"64"`
}

// seriesView is figures over time.
type seriesView struct {
	// Queue is the queue. Missing: all queues. Tenant is the tenant. Missing: all tenants.
	Queue  string `json:"queue,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// From and To are the window in whole slots, and EverySeconds is the length of a slot: 10, 60 or 3600, or a multiple if
	// there would be too many slots.
	From         time.Time `json:"from"`
	To           time.Time `json:"to"`
	EverySeconds float64   `json:"every_seconds"`
	// Counted says that the figures are known. Without it nobody counts, or only some processes do.
	Counted bool `json:"counted"`
	// CountedFrom is from when they are known. Nobody counted in the slots before it. Missing: they are not known.
	CountedFrom time.Time `json:"counted_from,omitzero"`
	// Slots are the slots, the oldest first.
	Slots []slotView `json:"slots"`
}

// slotView is the figures of a slot of time.
type slotView struct {
	// At is when the slot begins.
	At time.Time `json:"at"`
	// Counts count the moves in it.
	Counts stat.Counts `json:"counts"`
	// Wait is from due to claim, of the jobs claimed in the slot. Run is from claim to end, of those completed. Missing: none.
	Wait *quantiles `json:"wait_seconds,omitempty"`
	Run  *quantiles `json:"run_seconds,omitempty"`
	// Level is how much waited at the worst look of upkeep, which looks each minute. Missing: nothing did, or it did not look.
	Level *stat.Level `json:"level,omitempty"`
}

// merged merges slots until there are few.
func merged(found stat.Series, most int) (every time.Duration, out []stat.Stat) {
	whole := int(found.To.Sub(found.From)/found.Every) + 1
	every = found.Every * time.Duration((whole+most-1)/most)
	for _, s := range found.Slots {
		if s.At = s.At.Truncate(every); len(out) == 0 || !out[len(out)-1].At.Equal(s.At) {
			out = append(out, s)
			continue
		}
		out[len(out)-1].Merge(s)
	}
	return every, out
}

// series reads figures over time.
func (c *call) series(ctx context.Context, filter stat.Filter, in *SeriesInput) (seriesView, error) {
	filter.Tenant, filter.From, filter.To = in.Tenant, in.From, in.To
	while, err := optional("window", in.Window)
	if err != nil {
		return seriesView{}, err
	}
	if while > 0 && filter.From.IsZero() {
		if filter.To.IsZero() {
			if filter.To, err = c.api.store.Now(ctx); err != nil {
				return seriesView{}, err
			}
		}
		filter.From = filter.To.Add(-while)
	}
	found, err := stat.Over(ctx, c.api.store, filter)
	if err != nil {
		return seriesView{}, err
	}
	out := seriesView{Tenant: in.Tenant, From: found.From, To: found.To, EverySeconds: found.Every.Seconds(), Counted: found.Counted, CountedFrom: found.Since, Slots: []slotView{}}
	every, slots := merged(found, in.Slots)
	out.From, out.EverySeconds = found.From.Truncate(every), every.Seconds()
	for _, s := range slots {
		view := slotView{At: s.At, Counts: s.Counts, Level: s.Level}
		if s.Wait.Count() > 0 {
			view.Wait = quantilesOf(s.Wait.Quantiles())
		}
		if s.Run.Count() > 0 {
			view.Run = quantilesOf(s.Run.Quantiles())
		}
		out.Slots = append(out.Slots, view)
	}
	return out, nil
}
