package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
)

// hindered adds the reported reason that keeps a claimed or dispatched job from its start or its end.
func (g *Reason) hindered(holders []presence.Holder, job sluice.Job, now time.Time) {
	if job.State == sluice.StateDispatched {
		if c, found := followed(holders, job.Queue, now); found {
			g.Summary, g.Repair = g.Summary+"; it may not have begun: "+saysOf(c), c.Repair
			if c.OfEngine() {
				g.Summary = g.Summary + "; its end is not seen meanwhile"
			}
		}
		return
	}
	at := slices.IndexFunc(holders, func(h presence.Holder) bool { return h.ID == job.Holder })
	silent := at >= 0 && !holders[at].Alive(now)
	if at >= 0 && !silent {
		if c, open := holders[at].Condition(job.Queue, presence.Condition.OfEngine); open && holders[at].Role == presence.RoleDispatcher {
			g.Summary, g.Repair = g.Summary+"; it waits for that: "+saysOf(c), c.Repair
			return
		}
	}
	if silent {
		g.Summary += "; " + holders[at].Silence(now)
	}
	if (silent || !job.LeaseUntil.After(now)) && !tended(holders, now) {
		g.Summary, g.Repair = g.Summary+"; no upkeep runs, which would take it back when its lease has ended", "sluice upkeep"
	}
}

// tended reports whether some upkeep runs.
func tended(holders []presence.Holder, now time.Time) bool {
	return slices.ContainsFunc(holders, func(h presence.Holder) bool { return h.Role == presence.RoleUpkeep && h.Alive(now) })
}

// blameRuns adds to closed reasons that wait for runs why these runs may never end.
func blameRuns(reasons []Reason, c presence.Condition) {
	for i := range reasons {
		if g := &reasons[i]; !g.Open && (g.Name == "in_flight" || g.Name == "concurrency") {
			g.Summary, g.Repair = g.Summary+"; runs may not end: "+saysOf(c), c.Repair
		}
	}
}

// servedReason says whether anybody claims from the queue: dispatchers if an engine runs the jobs, else workers.
func servedReason(q sluice.Queue, holders []presence.Holder, o Position) Reason {
	if sluice.IsInternalQueue(q.Name) {
		return upkeepReason(holders, o.Now)
	}
	if q.Settings.Engine != "" {
		return dispatchersReason(q, holders, o)
	}
	workers, slots, busy := 0, 0, 0
	for _, h := range holders {
		if h.Role != presence.RoleDispatcher && h.Serves(q.Name, o.Now) {
			workers, slots, busy = workers+1, slots+h.Slots, busy+h.Busy
		}
	}
	if workers == 0 {
		if told := quiesced(holders, q.Name, o.Now, func(h presence.Holder) bool { return h.Role != presence.RoleDispatcher }); told > 0 {
			return recordedReason("workers", q.Name, told)
		}
		return Reason{
			Name: "workers", Summary: fmt.Sprintf("no worker of queue %q was seen in the last %s", q.Name, presence.Silence) + lastOf(holders, q.Name, o.Now),
			Repair: "sluice work " + q.Name + " -- COMMAND",
		}
	}
	serve := fmt.Sprintf("%d workers serve", workers)
	if workers == 1 {
		serve = "1 worker serves"
	}
	g := Reason{Name: "workers", Open: busy < slots || slots == 0, Summary: fmt.Sprintf("%s the queue, with %d of %d slots busy", serve, busy, slots)}
	if !g.Open {
		g.Name = "slots"
		g.Summary += "; one has to become free"
		g.Repair = fmt.Sprintf("more slots: sluice work %s --slots N -- COMMAND; sluice jobs --queue %s --state claimed shows what runs", q.Name, q.Name)
	}
	return g
}

// quiesced counts the living processes of a queue that claim nothing, because somebody told them to or because they end.
func quiesced(holders []presence.Holder, queue string, now time.Time, which func(presence.Holder) bool) (count int) {
	for _, h := range holders {
		if which(h) && slices.Contains(h.Queues, queue) && h.Alive(now) && !h.Mode.Claims() {
			count++
		}
	}
	return count
}

// recordedReason says that all processes which serve a queue claim nothing.
func recordedReason(name, queue string, count int) Reason {
	return Reason{
		Name: name, Summary: fmt.Sprintf("all %d %s of queue %q that run were told to claim nothing, or end", count, name, queue),
		Repair: "`sluice holders` says who told them, and how to lift it; or start others",
	}
}

// upkeepReason says whether upkeep was seen, which alone works on internal queues. It does not know which receivers an
// upkeep has.
func upkeepReason(holders []presence.Holder, now time.Time) Reason {
	if slices.ContainsFunc(holders, func(h presence.Holder) bool { return h.Role == presence.RoleUpkeep && h.Alive(now) }) {
		return Reason{Name: "upkeep", Open: true, Summary: "upkeep delivers notifications to the receivers that it has"}
	}
	return Reason{Name: "upkeep", Summary: fmt.Sprintf("no upkeep was seen in the last %s, and upkeep alone works on internal queues", presence.Silence), Repair: "sluice upkeep --alert-webhook ADDRESS"}
}

// lastOf names the process that served a queue last, or the queues that other processes serve instead.
func lastOf(holders []presence.Holder, queue string, now time.Time) string {
	var last presence.Holder
	var others []string
	for _, h := range holders {
		switch {
		case slices.Contains(h.Queues, queue):
			if h.Seen.After(last.Seen) {
				last = h
			}
		case h.Role == presence.RoleWorker && h.Alive(now):
			others = append(others, h.Queues...)
		}
	}
	if last.ID != "" {
		return fmt.Sprintf("; the last one is %s: ", last.ID) + last.Silence(now)
	}
	if len(others) > 0 {
		slices.Sort(others)
		return fmt.Sprintf("; the workers that run serve other queues: %q", slices.Compact(others))
	}
	return ""
}

// dispatchersReason says who hands the queue's jobs to its engine. It is closed if every dispatcher skips the queue.
func dispatchersReason(q sluice.Queue, holders []presence.Holder, o Position) Reason {
	dispatchers, hindered := 0, 0
	var trouble presence.Condition
	for _, h := range holders {
		c, has := h.Condition(q.Name, func(presence.Condition) bool { return true })
		if h.Role != presence.RoleDispatcher || !h.Alive(o.Now) || !has && !h.Serves(q.Name, o.Now) {
			continue
		}
		dispatchers++
		if has {
			hindered, trouble = hindered+1, c
		}
	}
	told := quiesced(holders, q.Name, o.Now, func(h presence.Holder) bool { return h.Role == presence.RoleDispatcher })
	switch {
	case dispatchers == 0 && told > 0:
		return recordedReason("dispatchers", q.Name, told)
	case dispatchers == 0:
		return Reason{
			Name: "dispatchers", Summary: fmt.Sprintf("the engine %q runs the queue's jobs, and no dispatcher of it was seen in the last %s", q.Settings.Engine, presence.Silence) + lastOf(holders, q.Name, o.Now),
			Repair: "sluice dispatch " + q.Name + " " + presence.EngineFlag(q.Settings.Engine),
		}
	case hindered == dispatchers:
		return Reason{Name: "dispatchers", Summary: fmt.Sprintf("no dispatcher hands the queue's jobs to the engine %q: %s", q.Settings.Engine, saysOf(trouble)), Repair: trouble.Repair}
	case hindered > 0:
		return Reason{Name: "dispatchers", Open: true, Summary: fmt.Sprintf("%d of %d dispatchers hand the queue's jobs to the engine %q; another says: %s", dispatchers-hindered, dispatchers, q.Settings.Engine, saysOf(trouble))}
	}
	hand := fmt.Sprintf("%d dispatchers hand", dispatchers)
	if dispatchers == 1 {
		hand = "1 dispatcher hands"
	}
	return Reason{Name: "dispatchers", Open: true, Summary: fmt.Sprintf("%s the queue's jobs to the engine %q", hand, q.Settings.Engine)}
}

// followed returns the condition that living upkeep reports about the runs of a queue: no worker serves them, or
// the engine does not answer.
func followed(holders []presence.Holder, queue string, now time.Time) (presence.Condition, bool) {
	for _, h := range holders {
		if h.Role != presence.RoleUpkeep || !h.Alive(now) {
			continue
		}
		if c, found := h.Condition(queue, func(c presence.Condition) bool { return c.Kind == presence.ConditionNoPollers || c.OfEngine() }); found {
			return c, true
		}
	}
	return presence.Condition{}, false
}

// saysOf returns the text of a condition without the name of the queue, which the reader knows.
func saysOf(c presence.Condition) string {
	c.Queue = ""
	return c.String()
}
