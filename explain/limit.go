package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

// limitReasons returns a reason for each limit that the queue shares. For a queue without limits, it asks the store
// nothing.
func limitReasons(ctx context.Context, store sluice.Store, q sluice.Queue, j sluice.Job, p Position) ([]Reason, error) {
	names := limit.Names(q.Settings.Limits)
	if len(names) == 0 {
		return nil, nil
	}
	uses, err := limit.Uses(ctx, store, names...)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]limit.Use, len(uses))
	for _, use := range uses {
		byName[use.Limit.Name] = use
	}
	reasons := make([]Reason, len(names))
	for i, name := range names {
		if of := byName[name].Limit; of.PerKey && !of.ClosedAt(p.Now) {
			if reasons[i], err = keyReason(ctx, store, of, j, p.Now); err != nil {
				return nil, err
			}
			continue
		}
		reasons[i] = limitReason(name, byName[name], p.Now)
	}
	return reasons, nil
}

// keyReason says whether a limit that is per key lets a job of its limit key start.
func keyReason(ctx context.Context, store sluice.Store, l limit.Limit, j sluice.Job, now time.Time) (Reason, error) {
	if j.LimitKey == "" {
		return Reason{Name: "limit", Open: true, Summary: fmt.Sprintf("limit %q is per key, and the job has no limit key", l.Name)}, nil
	}
	uses, err := limit.KeyUses(ctx, store, l.Name, j.LimitKey)
	if err != nil || len(uses) == 0 {
		return limitReason(l.Name, limit.Use{}, now), err
	}
	of := fmt.Sprintf("key %q of limit %q", j.LimitKey, l.Name)
	switch use := uses[0]; {
	case !use.ClosedUntil.IsZero():
		return Reason{
			Name: "limit", Until: use.ClosedUntil, Summary: fmt.Sprintf("%s is closed until %s", of, moment(use.ClosedUntil)),
			Repair: fmt.Sprintf("sluice limits open %s --key %s --reason WHY", l.Name, j.LimitKey),
		}, nil
	case l.Concurrency > 0 && use.InFlight >= l.Concurrency:
		return Reason{
			Name: "limit", Repair: fmt.Sprintf("sluice limits set %s concurrency=N --reason WHY", l.Name),
			Summary: fmt.Sprintf("%d in flight with %s, and %d are allowed; one has to end first", use.InFlight, of, l.Concurrency),
		}, nil
	case use.Wait > 0:
		until := now.Add(use.Wait)
		return Reason{Name: "limit", Until: until, Summary: fmt.Sprintf("%s has its next token at %s", of, tokenAt(until))}, nil
	}
	return Reason{Name: "limit", Open: true, Summary: of + " lets a job start"}, nil
}

// limitReason says whether a limit lets a job start. The zero use is that of a limit that is not stored.
func limitReason(name string, use limit.Use, now time.Time) Reason {
	l := use.Limit
	switch {
	case l.Name == "":
		return Reason{
			Name: "limit", Open: true, Summary: fmt.Sprintf("limit %q is not stored, and limits nothing", name),
			Repair: fmt.Sprintf("sluice limits set %s rate=N/s --reason WHY", name),
		}
	case l.ClosedAt(now):
		until := ""
		if !l.ClosedUntil.IsZero() {
			until = " until " + moment(l.ClosedUntil)
		}
		return Reason{
			Name: "limit", Until: l.ClosedUntil, Repair: fmt.Sprintf("sluice limits open %s --reason WHY", name),
			Summary: fmt.Sprintf("limit %q is closed%s; %s changed it last at %s: %s", name, until, l.ChangedBy, moment(l.ChangedAt), l.Reason),
		}
	case l.Concurrency > 0 && use.InFlight >= l.Concurrency:
		return Reason{
			Name: "limit", Repair: fmt.Sprintf("sluice limits get %s shows its queues; or sluice limits set %s concurrency=N --reason WHY", name, name),
			Summary: fmt.Sprintf("%d in flight in the queues of limit %q, and %d are allowed; one has to end first", use.InFlight, name, l.Concurrency),
		}
	case use.Wait > 0:
		until := now.Add(use.Wait)
		return Reason{Name: "limit", Until: until, Summary: fmt.Sprintf("limit %q of %s has its next token at %s", name, l.Rate, tokenAt(until))}
	}
	return Reason{Name: "limit", Open: true, Summary: fmt.Sprintf("limit %q lets a job start", name)}
}
