package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
)

// sharedFact is something that jobs have in common.
type sharedFact struct{ Name, Value string }

const (
	// comparedPayloads is of how many jobs the payloads are compared: each takes a read.
	comparedPayloads = 5
	// payloadFor is how long a payload is shared. It rarely changes.
	payloadFor = time.Minute
	// shownFacts is the most facts of a page.
	shownFacts = 20
)

// common lists what all jobs have in common, and what the payloads of the first few have. One job has nothing in common.
func (v *visit) common(ctx context.Context, jobs []jobRow) (facts []sharedFact, err error) {
	if len(jobs) < 2 {
		return nil, nil
	}
	versions := make(map[string]string)
	if !v.viewer.bounded() {
		holders, err := v.holders(ctx)
		if err != nil {
			return nil, err
		}
		for _, h := range holders {
			versions[h.ID] = h.Version
		}
	}
	all := make([][]sharedFact, 0, len(jobs))
	for _, j := range jobs {
		all = append(all, factsOf(j.Job, versions[j.Holder]))
	}
	facts = inCommon(all)
	all = nil
	for _, j := range jobs[:min(len(jobs), comparedPayloads)] {
		var one sluice.Job
		err := v.readFor(ctx, payloadFor, "/jobs/"+url.PathEscape(j.ID.String()), nil, &one)
		if statusOf(err) == http.StatusNotFound { // it is gone meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, valuesOf("payload", readTree(one.Payload)))
	}
	if len(all) > 1 {
		facts = append(facts, inCommon(all)...)
	}
	return facts[:min(len(facts), shownFacts)], nil
}

// factsOf are what people look at first in a job that failed. The version is that of its last holder, if that still lives.
func factsOf(j sluice.Job, version string) []sharedFact {
	host, _, _ := strings.Cut(j.Holder, ":")
	facts := []sharedFact{
		{"tenant", j.Tenant},
		{"worker's host", host},
		{"worker's version", version},
		{"engine", j.Engine},
		{"priority", strconv.Itoa(j.Priority)},
		{"attempts", strconv.Itoa(j.Attempts)},
		{"limit key", j.LimitKey},
	}
	for name, value := range j.Labels {
		facts = append(facts, sharedFact{"label " + name, value})
	}
	return facts
}

// inCommon are the facts that all lists have, in the order of the first list but labels by name. Empty values are none.
func inCommon(all [][]sharedFact) (facts []sharedFact) {
	for _, f := range all[0] {
		if f.Value != "" && !slices.ContainsFunc(all[1:], func(other []sharedFact) bool { return !slices.Contains(other, f) }) {
			facts = append(facts, f)
		}
	}
	slices.SortStableFunc(facts, func(a, b sharedFact) int {
		if strings.HasPrefix(a.Name, "label ") && strings.HasPrefix(b.Name, "label ") {
			return strings.Compare(a.Name, b.Name)
		}
		return 0
	})
	return facts
}

// valuesOf are the values in a JSON value by their path. What is redacted or cut is left out, as it may differ.
func valuesOf(path string, n node) (values []sharedFact) {
	switch n.Kind {
	case "object", "list":
		for i, part := range n.Nodes {
			name := part.Key
			if n.Kind == "list" {
				name = strconv.Itoa(i)
			}
			values = append(values, valuesOf(path+"."+name, part)...)
		}
	case "text", "number", "word":
		if !n.Redacted {
			values = append(values, sharedFact{path, sluice.Brief(n.Text)})
		}
	}
	return values
}

// release is the newest version that serves a queue, and when its first process began.
type release struct {
	version string
	at      time.Time
}

// markNew says which groups are new since the newest version began to serve their queues: no dead letter of the group is
// older, but some dead letter is. If older ones were not compared, nothing is known.
func (l *deadList) markNew(holders []presence.Holder) {
	if l.More {
		return
	}
	for i, g := range l.Groups {
		newest := release{}
		for version, d := range deploysOf(g.Queue, holders) {
			if d.at.After(newest.at) {
				newest = release{version, d.at}
			}
		}
		older := func(other deadGroup) bool { return other.First.Before(newest.at) }
		if !newest.at.IsZero() && !older(g) && slices.ContainsFunc(l.Groups, older) {
			l.Groups[i].NewSince = newest.version
		}
	}
}
