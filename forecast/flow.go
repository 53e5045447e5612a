package forecast

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/presence"
)

// queueFlow is how a queue lets jobs through, as a forecast assumes it.
type queueFlow struct {
	limits  []flowLimit
	tells   []Limit
	notes   []string
	runTime time.Duration
	// opens is when jobs may start, in seconds after the count. +Inf: unknown.
	opens float64
	// lines are the waiting lines. held is how tenants' own limits hold their jobs back.
	lines []tenantLine
	held  []HeldTenant
	// later is how scheduled changes change limits and lines, in order.
	later []laterFlow
	// unserved says that no process takes the queue's jobs.
	unserved bool
	// unknownConcurrency says that a tenant has a concurrency, but its effect is unknown because the run time is unknown.
	unknownConcurrency bool
}

// surroundings are what a forecast knows beside a queue and its count.
type surroundings struct {
	now     time.Time
	holders []presence.Holder
	shared  map[string]limit.Use
	what    WhatIf
}

// flowOf collects the limits of the whole queue, as of an instant.
func (s surroundings) flowOf(q sluice.Queue, counted QueueCounts, at time.Time) queueFlow {
	f := queueFlow{tells: []Limit{}, runTime: counted.RunTime}
	if s.what.RunTime > 0 {
		f.runTime = s.what.RunTime
	}
	waiting := counted.Due.Jobs > 0
	f.addRate(q.Settings, waiting, s.what)
	f.addBatch(waiting, s.what)
	f.addCapacity(q, counted, s.holders, s.now, s.what)
	f.addPause(q, counted, at)
	f.addShared(q, counted, s.shared, at)
	return f
}

// add adds a limit. If jobs wait, its tokens are taken already.
func (f *queueFlow) add(limit flowLimit, waiting bool, name, says string) {
	if waiting {
		limit.tokens = 0
	}
	f.limits = append(f.limits, limit)
	f.tells = append(f.tells, Limit{Name: name, PerSecond: limit.rate, Summary: says})
}

func (f *queueFlow) addRate(s sluice.Settings, waiting bool, what WhatIf) {
	rate, burst := s.Rate, s.Burst
	if !what.Rate.IsZero() {
		rate, burst = what.Rate, 0
	}
	if rate.IsZero() || what.Rate.IsZero() && what.Batch > 0 {
		return
	}
	f.add(rateLimit("rate", rate, burst, 1), waiting, "rate", rate.String())
}

// addBatch adds batches. Over a while they are a rate.
func (f *queueFlow) addBatch(waiting bool, what WhatIf) {
	if what.Batch == 0 {
		return
	}
	batch := float64(what.Batch)
	f.add(flowLimit{tokens: batch, burst: batch, rate: batch / what.Every.Seconds(), name: "batch"}, waiting, "batch",
		fmt.Sprintf("%d every %s", what.Batch, sluice.FormatDuration(what.Every)))
}

// taker returns what people call the processes that take a queue's jobs.
func taker(q sluice.Queue) string {
	switch {
	case sluice.IsInternalQueue(q.Name):
		return presence.RoleUpkeep
	case q.Settings.Engine != "":
		return presence.RoleDispatcher
	}
	return presence.RoleWorker // a forwarder is one of its own kind
}

// addCapacity adds the limit of jobs in flight: by the queue's setting, and by the slots of its workers. Dispatchers and upkeep
// have no slots.
func (f *queueFlow) addCapacity(q sluice.Queue, counted QueueCounts, holders []presence.Holder, now time.Time, what WhatIf) {
	concurrency, says := q.Settings.Concurrency, fmt.Sprintf("concurrency %d", q.Settings.Concurrency)
	workers, slots, atOnce := 0, 0, 0
	for _, h := range holders {
		if h.Takes(q, now) {
			workers, slots, atOnce = workers+1, slots+h.Slots, atOnce+mostOfClaim(q.Settings.Batch, h.Slots)
		}
	}
	f.unserved = workers == 0
	f.addInterval(q.Settings, counted.Due.Jobs > 0, workers, atOnce, what)
	switch {
	case what.Concurrency > 0:
		concurrency, says = what.Concurrency, fmt.Sprintf("concurrency %d", what.Concurrency)
	case f.unserved:
		f.notes = append(f.notes, "no "+taker(q)+" of it was seen in the last "+presence.Silence.String()+"; the forecast supposes that there are enough")
	case slots > 0 && (concurrency == 0 || slots < concurrency):
		concurrency, says = slots, fmt.Sprintf("%d slots of %d workers", slots, workers)
		if workers == 1 {
			says = fmt.Sprintf("%d slots of 1 worker", slots)
		}
	}
	switch {
	case concurrency == 0 || counted.CountedAt.IsZero():
	case f.runTime <= 0:
		f.noteNoRunTime(says)
	default:
		f.addPlaces("places", concurrency, counted.InFlight.Jobs, says)
	}
}

// mostOfClaim returns how many jobs a claim of a process takes at most: the queue's batch, and the slots of a worker. 0: unknown.
func mostOfClaim(batch, slots int) int {
	if batch == 0 || slots == 0 {
		return max(batch, slots)
	}
	return min(batch, slots)
}

// addInterval adds the least time between two claims of one process. AtOnce is how many jobs a claim of each process takes,
// together.
func (f *queueFlow) addInterval(s sluice.Settings, waiting bool, processes, atOnce int, what WhatIf) {
	every := s.Interval
	switch {
	case every == 0 || what.Batch > 0 || processes == 0:
	case atOnce == 0:
		f.notes = append(f.notes, fmt.Sprintf("the forecast leaves interval %s out, because how many jobs a dispatcher claims at once is not known; set batch", sluice.FormatDuration(every)))
	default:
		jobs := float64(atOnce)
		says := fmt.Sprintf("%d every %s by interval", atOnce, sluice.FormatDuration(every))
		f.add(flowLimit{tokens: jobs, burst: jobs, rate: jobs / every.Seconds(), name: "interval"}, waiting, "batch", says)
	}
}

// addPlaces adds a limit of jobs in flight.
func (f *queueFlow) addPlaces(name string, places, inFlight int, says string) {
	f.add(placesLimit(name, float64(places), inFlight, f.runTime), false, "in_flight", fmt.Sprintf("%s, each job %s", says, sluice.FormatDuration(roundRun(f.runTime))))
}

func (f *queueFlow) noteNoRunTime(says string) {
	f.notes = append(f.notes, fmt.Sprintf("the forecast leaves %s out, because how long a job runs is not known: none finished lately", says))
}

// roundRun rounds a run time for people.
func roundRun(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

func (f *queueFlow) addPause(q sluice.Queue, counted QueueCounts, now time.Time) {
	switch {
	case !q.Settings.PausedAt(now):
	case q.Settings.PausedUntil.IsZero():
		f.opens = math.Inf(1)
		f.notes = append(f.notes, "it is paused, so that nothing starts before somebody resumes it")
	default:
		f.opens = math.Max(0, q.Settings.PausedUntil.Sub(counted.CountedAt).Seconds())
		f.notes = append(f.notes, "it is paused until "+feature.InstantText(q.Settings.PausedUntil))
	}
}

// forecastOf lets the counted jobs of a queue pass its limits. With byTenant, it returns times by tenant too.
func forecastOf(counted QueueCounts, flow queueFlow, of Forecast, byTenant bool) Queue {
	out := Queue{
		Queue: counted.Queue, CountedAt: counted.CountedAt, Took: counted.Took, Stale: counted.Stale(of.Now),
		Limits: flow.tells, HeldTenants: flow.held, Notes: flow.notes, Unserved: flow.unserved, RunTime: flow.runTime,
		Due: counted.Due, InFlight: counted.InFlight, Blocked: counted.Blocked, Later: counted.Later,
		Waves: []Bucket{},
	}
	if counted.CountedAt.IsZero() {
		out.Notes = append(out.Notes, "it was not counted yet")
		return out
	}
	if out.RunTime == 0 {
		out.Notes = append(out.Notes, "when jobs are finished is not told, because how long one runs is not known")
	}
	out.Waves = bucketsOf(counted, of)
	ends := make([]float64, len(out.Waves))
	for i, w := range out.Waves {
		ends[i] = math.Max(0, w.At.Add(w.Span).Sub(counted.CountedAt).Seconds())
	}
	lines := make([]flowLine, len(flow.lines))
	for i, l := range flow.lines {
		lines[i] = l.flowLine
	}
	starts := drain(lines, slices.Clone(flow.limits), ends, flow.later...)
	fillStarts(out.Waves, starts)
	flow.fillUse(out.Waves, counted)
	for i, l := range flow.lines {
		fillTimes(&out, l, starts.last[i], byTenant)
	}
	return out
}

// bucketsOf makes the buckets, with the jobs that fall due in each.
func bucketsOf(counted QueueCounts, of Forecast) []Bucket {
	var out []Bucket
	if counted.Due.Jobs > 0 {
		out = append(out, Bucket{At: counted.CountedAt, Tally: copyTally(counted.Due)})
	}
	next := 0
	for at := counted.CountedAt.Truncate(of.Bucket); at.Before(of.Until); at = at.Add(of.Bucket) {
		w := Bucket{At: at, Span: of.Bucket}
		for ; next < len(counted.Ahead) && counted.Ahead[next].At.Before(at.Add(of.Bucket)); next++ {
			w.Tally = sumTally(w.Tally, counted.Ahead[next].Tally)
		}
		out = append(out, w)
	}
	return out
}

func copyTally(t Tally) Tally { return sumTally(Tally{}, t) }

func sumTally(into, t Tally) Tally {
	into.Jobs += t.Jobs
	for name, jobs := range t.Tenants {
		if into.Tenants == nil {
			into.Tenants = make(map[string]int)
		}
		into.Tenants[name] += jobs
	}
	return into
}

// fillStarts fills in how many jobs start in each bucket, and how many due jobs wait at its end. It counts whole
// jobs; a job that has not wholly started waits.
func fillStarts(waves []Bucket, starts startsAt) {
	before, arrived := 0, 0
	for i := range waves {
		w := &waves[i]
		arrived += w.Jobs
		started := min(arrived, int(math.Floor(starts.by[i]+nothing)))
		w.Starts, w.Backlog = started-before, arrived-started
		before = started
	}
}

// within reports whether jobs belong to a bucket that ends this many seconds after the count.
func (a arrival) within(w Bucket, end float64) bool {
	return a.due || w.Span > 0 && a.at < end
}

// fillUse fills in the share of the limits' rate that each bucket uses.
func (f queueFlow) fillUse(waves []Bucket, counted QueueCounts) {
	for i := range waves {
		w := &waves[i]
		from := math.Max(0, w.At.Sub(counted.CountedAt).Seconds())
		if most := f.mostStarts(from, w.At.Add(w.Span).Sub(counted.CountedAt).Seconds()); most > 0 {
			w.Used = math.Min(1, float64(w.Starts)/most)
		}
	}
}

// fillTimes fills in when the jobs of a line that fall due in each bucket start and finish, and how late they are.
func fillTimes(out *Queue, line tenantLine, lasts []float64, byTenant bool) {
	next := 0
	for i := range out.Waves {
		w := &out.Waves[i]
		end := w.At.Add(w.Span).Sub(out.CountedAt).Seconds()
		t, last := TenantTimes{Tenant: line.tenant, Others: line.others}, -1.0
		for ; next < len(line.arrivals) && line.arrivals[next].within(*w, end); next++ {
			a := line.arrivals[next]
			t.Jobs += a.jobs
			if math.IsInf(lasts[next], 1) {
				t.NeverJobs += a.jobs
				continue
			}
			last = lasts[next]
			t.Late = max(t.Late, seconds(last-a.at))
		}
		if last >= 0 {
			t.LastStart = out.CountedAt.Add(seconds(last)).Truncate(time.Millisecond)
			if out.RunTime > 0 {
				t.Finished = t.LastStart.Add(out.RunTime).Truncate(time.Millisecond)
			}
		}
		w.take(t, byTenant)
	}
}

// take adds a tenant's times to the bucket.
func (w *Bucket) take(t TenantTimes, tell bool) {
	if t.Jobs == 0 {
		return
	}
	w.NeverJobs += t.NeverJobs
	w.Late = max(w.Late, t.Late)
	if t.LastStart.After(w.LastStart) {
		w.LastStart, w.Finished = t.LastStart, t.Finished
	}
	if tell {
		w.ByTenant = append(w.ByTenant, t)
	}
}

// longest is the longest delay that a forecast reports.
const longest = 100 * 365 * 24 * time.Hour

// seconds returns a duration, at most longest.
func seconds(s float64) time.Duration {
	if s >= longest.Seconds() {
		return longest
	}
	return time.Duration(s * float64(time.Second))
}

// Never reports whether all jobs of the bucket never start by the present limits.
func (w Bucket) Never() bool { return w.Jobs > 0 && w.LastStart.IsZero() }

// Held describes in a few words the limits that hold the queue's jobs back.
func (q Queue) Held() string {
	if len(q.Limits) == 0 && len(q.HeldTenants) == 0 {
		return "nothing limits it: each job starts when it is due"
	}
	says := make([]string, len(q.Limits))
	for i, l := range q.Limits {
		says[i] = l.Summary
	}
	return strings.Join(append(says, heldWords(q.HeldTenants)...), "; ")
}
