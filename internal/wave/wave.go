// Package wave is the arithmetic that all stores share to count jobs by the time at which they fall
// due. The package decides where a job is counted, which tenants are counted by name, and which
// stored rows have changed.
//
// Begin with [Frame], whose PlaceOf finds the place of a job, and [Counter], which adds up a count.
// [Differences] keeps the writes small.
//
// Read next: package forecast, which uses the counts, and wave.go of package memory, the simplest
// store.
package wave

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
)

// Place is where a job is counted: one of the places below, or the minute since 1970 in which it is
// due. Minutes are for queued jobs that fall due between the frame's Now and Until.
type Place int64

// The places without an instant.
const (
	Due      Place = -1
	InFlight Place = -2
	Blocked  Place = -3
	Later    Place = -4
)

// Frame is the time span of a count.
type Frame struct {
	// Now is the instant of the count.
	Now time.Time
	// Minutes is the end of the rows per minute, and Until the end of the rows per hour.
	Minutes, Until time.Time
}

// NewFrame returns the frame that begins at now.
func NewFrame(now time.Time) Frame {
	now = now.UTC()
	minutes := now.Add(forecast.MinuteHorizon + time.Hour - time.Nanosecond).Truncate(time.Hour)
	return Frame{Now: now, Minutes: minutes, Until: minutes.Add(forecast.Horizon - forecast.MinuteHorizon)}
}

// PlaceOf returns the place of a job. The statements of the SQL stores compute the same. An
// uncertain job has no place.
func (f Frame) PlaceOf(state sluice.State, blocked bool, dueAt time.Time) (p Place, counted bool) {
	switch {
	case state == sluice.StateClaimed, state == sluice.StateDispatched:
		return InFlight, true
	case state != sluice.StateQueued:
		return 0, false
	case blocked:
		return Blocked, true
	case !dueAt.After(f.Now):
		return Due, true
	case !dueAt.Before(f.Until):
		return Later, true
	}
	return Place(dueAt.Unix() / 60), true
}

// The parts of a queue's count, as the stores name them.
const (
	partDue      = "due"
	partInFlight = "in_flight"
	partBlocked  = "blocked"
	partLater    = "later"
	partMinute   = "minute"
	partHour     = "hour"
)

// spot identifies a row within its queue. At is the beginning of 1970 if the row has no instant.
type spot struct {
	part string
	at   time.Time
}

func (f Frame) spotOf(p Place) spot {
	epoch := time.Unix(0, 0).UTC()
	switch p {
	case Due:
		return spot{partDue, epoch}
	case InFlight:
		return spot{partInFlight, epoch}
	case Blocked:
		return spot{partBlocked, epoch}
	case Later:
		return spot{partLater, epoch}
	}
	at := time.Unix(int64(p)*60, 0).UTC()
	if at.Before(f.Minutes) {
		return spot{partMinute, at}
	}
	return spot{partHour, at.Truncate(time.Hour)}
}

// Row is a figure of a count as the stores keep it.
type Row struct {
	// Part is the kind of figure, and At its minute or hour.
	Part string
	At   time.Time
	Jobs int
	// Tenants is the figures of tenants by name, as JSON.
	Tenants string
}

func (r Row) spot() spot { return spot{r.Part, r.At} }

// Tenant is a tenant of a queue.
type Tenant struct{ Queue, Name string }

// Counter adds up a count.
type Counter struct {
	frame  Frame
	queues map[string]map[spot]*forecast.Tally
	ranks  map[Tenant]int
	most   int // how many tenants are ranked at most
}

// maxRanks limits the memory of a count.
const maxRanks = 200_000

// NewCounter makes an empty counter.
func NewCounter(frame Frame) *Counter {
	return &Counter{frame: frame, queues: make(map[string]map[spot]*forecast.Tally), ranks: make(map[Tenant]int), most: maxRanks}
}

// Add counts jobs of a queue in a place.
func (c *Counter) Add(queue string, p Place, jobs int) { c.tally(queue, p).Jobs += jobs }

func (c *Counter) tally(queue string, p Place) *forecast.Tally {
	spots := c.queues[queue]
	if spots == nil {
		spots = make(map[spot]*forecast.Tally)
		c.queues[queue] = spots
	}
	at := c.frame.spotOf(p)
	if spots[at] == nil {
		spots[at] = &forecast.Tally{}
	}
	return spots[at]
}

// Rank counts queued jobs of a tenant, to find the largest tenants.
func (c *Counter) Rank(t Tenant, jobs int) {
	c.ranks[t] += jobs
	if len(c.ranks) > c.most {
		c.thin()
	}
}

// thin drops the smaller half of the tenants. A large tenant rises again.
func (c *Counter) thin() {
	sizes := make([]int, 0, len(c.ranks))
	for _, jobs := range c.ranks {
		sizes = append(sizes, jobs)
	}
	slices.Sort(sizes)
	middle := sizes[len(sizes)/2]
	for t, jobs := range c.ranks {
		if jobs <= middle {
			delete(c.ranks, t)
		}
	}
}

// Largest lists the tenants to count by name, at most forecast.MaxTenants per queue. Of equal
// tenants, the first by name counts, so that a count differs little from the last one.
func (c *Counter) Largest() []Tenant {
	all := make([]Tenant, 0, len(c.ranks))
	for t := range c.ranks {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Tenant) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(c.ranks[b], c.ranks[a]), cmp.Compare(a.Name, b.Name))
	})
	var out []Tenant
	taken := 0
	for i, t := range all {
		if i == 0 || all[i-1].Queue != t.Queue {
			taken = 0
		}
		if taken < forecast.MaxTenants {
			out = append(out, t)
		}
		taken++
	}
	return out
}

// AddTenant counts jobs of one of the largest tenants. Add counts the same jobs, too.
func (c *Counter) AddTenant(t Tenant, p Place, jobs int) {
	tally := c.tally(t.Queue, p)
	if tally.Tenants == nil {
		tally.Tenants = make(map[string]int)
	}
	tally.Tenants[t.Name] += jobs
}

// Jobs returns how many jobs were counted.
func (c *Counter) Jobs() int {
	sum := 0
	for _, spots := range c.queues {
		for _, tally := range spots {
			sum += tally.Jobs
		}
	}
	return sum
}

// Queues lists the queues with counted jobs, and the given others, by name.
func (c *Counter) Queues(others []sluice.Queue) []string {
	names := make([]string, 0, len(c.queues)+len(others))
	for name := range c.queues {
		names = append(names, name)
	}
	for _, q := range others {
		names = append(names, q.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Rows returns the count of a queue, in order. Jobs may have come between the count of all jobs and
// the count by tenant. In that case the larger figure is the later one, and counts.
func (c *Counter) Rows(queue string) []Row {
	rows := make([]Row, 0, len(c.queues[queue]))
	for at, tally := range c.queues[queue] {
		named := 0
		for _, jobs := range tally.Tenants {
			named += jobs
		}
		tenants := "{}"
		if named > 0 {
			text, _ := json.Marshal(tally.Tenants) // names and numbers always encode
			tenants = string(text)
		}
		rows = append(rows, Row{Part: at.part, At: at.at, Jobs: max(tally.Jobs, named), Tenants: tenants})
	}
	slices.SortFunc(rows, compare)
	return rows
}

func compare(a, b Row) int { return cmp.Or(cmp.Compare(a.Part, b.Part), a.At.Compare(b.At)) }

// Differences compares the stored rows with the counted ones. gone are the rows to delete, and put
// the rows to write.
func Differences(stored, counted []Row) (gone, put []Row) {
	before := make(map[spot]Row, len(stored))
	for _, r := range stored {
		before[r.spot()] = r
	}
	for _, r := range counted {
		if before[r.spot()] != r {
			put = append(put, r)
		}
		delete(before, r.spot())
	}
	for _, r := range before {
		gone = append(gone, r)
	}
	slices.SortFunc(gone, compare)
	return gone, put
}

// Read adds a row to a queue's counts. Rows come in the order of their instants. Several rows of a
// part without instants add up.
func (r Row) Read(into *forecast.QueueCounts) error {
	tally := forecast.Tally{Jobs: r.Jobs}
	if r.Tenants != "" && r.Tenants != "{}" {
		if err := json.Unmarshal([]byte(r.Tenants), &tally.Tenants); err != nil {
			return fmt.Errorf("the tenants of a wave of queue %q: %w", into.Queue, err)
		}
	}
	switch r.Part {
	case partDue:
		into.Due = tally
	case partInFlight:
		into.InFlight = tally
	case partBlocked:
		into.Blocked = tally
	case partLater:
		into.Later = forecast.Tally{Jobs: into.Later.Jobs + tally.Jobs, Tenants: tally.Tenants}
	case partMinute:
		into.Ahead = append(into.Ahead, forecast.Wave{At: r.At, Span: time.Minute, Tally: tally})
	case partHour:
		into.Ahead = append(into.Ahead, forecast.Wave{At: r.At, Span: time.Hour, Tally: tally})
	}
	return nil
}
